"""Every change of a job, each one Lua script, and what its tasks read. Reading for people is in `reader`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from shared.connections.clock import ServerClock
from shared.contract import TaskName
from shared.errors import DamagedError
from shared.jobs import hit_blobs
from shared.jobs.admission import AdmissionQueues, Enqueued, NewJob, alike_fields
from shared.jobs.batches import Batches
from shared.jobs.budget import with_default_budget
from shared.jobs.codec import FAST, STORED, pack_small, text
from shared.jobs.damaged import DamagedJobs
from shared.jobs.endings import Endings, Retries
from shared.jobs.events import events_of
from shared.jobs.fields import Fields, damage_named, stored
from shared.jobs.hit_blobs import LostChunkError
from shared.jobs.ingests import Ingests
from shared.jobs.job import FIELDS, Job, read_job
from shared.jobs.keys import ACTIVE, IngestKeys, JobKeys, idempotency
from shared.jobs.known_content import KnownContent
from shared.jobs.note import Note
from shared.jobs.scripts import Scripts, as_json, node_args
from shared.jobs.states import State
from shared.jobs.work import CLAIMS, WorkLog
from shared.models import Answer, Cost, JobRequest, Lane, LeafResult, LeafStatus, MergedPool, Node, SearchResult
from shared.models.manifest import Manifest
from shared.models.plan import node_order
from shared.models.route import Route
from shared.settings import Settings
from shared.tracing.spans import submitted

WithHits = SearchResult | LeafResult | MergedPool
M = TypeVar("M", SearchResult, LeafResult, MergedPool)
_NOTHING = Note()
#: What the scripts that take hits return when a chunk that was known to stand in the job does not.
_CHUNK_LOST = -3
#: The root rerank is sent again as part of the merge.
_ENDS_WAIT_OF = {TaskName.MERGE_TREE.value: TaskName.RERANK_ROOT.value}


class JobStore:
    """The authoritative state of jobs, in Redis. All methods may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock | None = None) -> None:
        self.client, self.settings = client, settings
        self.clock = clock or ServerClock(client)
        self.admission = AdmissionQueues(client, settings, self.clock)
        self.batches = Batches(client, settings, self.clock, self.admission)
        self.work = WorkLog(client, settings, self.clock)
        self.endings = Endings(client, settings, self.clock, self.admission)
        self.retries = Retries(client, settings)
        self.damaged = DamagedJobs(client, settings, self.clock)
        self.ingests = Ingests(client, settings, self.clock)
        self._run = Scripts(client)
        self.known = KnownContent()
        #: Candidates outlive their job.
        self._whole = settings.jobs.keep == "candidates"

    def enqueue(
        self, jobs: Sequence[tuple[str, JobRequest]], retry_of: Mapping[str, str] | None = None
    ) -> list[Enqueued]:
        """Create queued jobs in the admission queues of their tenants, as far as there is room. One result per job.

        A job whose idempotency key names one that exists is that one, if its request is the same. `retry_of`: id of a
        new job -> the job that it tries again.
        """
        more = retry_of or {}
        return self.admission.enter([self.new_job(one, request, retry_of=more.get(one)) for one, request in jobs])

    def new_job(self, job_id: str, request: JobRequest, **more: str | None) -> NewJob:
        """A job to be enqueued. `more`: fields of this job alone; those that are None or empty are left out."""
        jobs, key = self.settings.jobs, request.idempotency_key
        if request.ingest is None:  # an ingest has no budget: half of a corpus is of no use
            request = with_default_budget(request, self.settings)
        seconds = request.deadline_s or (jobs.deadline_s if request.lane is Lane.INTERACTIVE else jobs.batch_deadline_s)
        limits = (request.max_calls, request.max_tokens, request.max_seconds, request.max_cost)
        alike = alike_fields(request.lane, request.tenant, seconds, limits, more.pop("batch_id", None))
        own = {"webhook": request.webhook, "traceparent": submitted(job_id), **more}
        if request.replay:
            own["replay_of"] = request.replay.of
        if request.ingest:
            own["ingest:files"] = "0"
        return NewJob(
            job_id, request.lane, request.tenant, jobs.queue_limit_of(request.queue_limit_s), alike, request.question,
            request.written(), [part for name, value in own.items() if value for part in (name, value)],
            idempotency(request.tenant, key) if key else "", request.digest if key else "",
        )  # fmt: skip

    def admit(self) -> list[tuple[str, int]]:
        """(job id, priority of its messages) of the jobs whose turn it is; their first message is to be sent.

        Those that have waited too long expire instead.
        """
        begin, more = list[tuple[str, int]](), True
        while more:
            turns = self.admission.admit()
            self.endings.expire(turns.overdue)
            begin += turns.begin
            more = turns.more
        return begin

    def release(self, job_ids: Sequence[str]) -> None:
        """Give back the places of jobs that have ended (by `finalise`), and of those that have expired from Redis."""
        under_way = self.admission.under_way() if job_ids else {}
        self.endings.finalise(job_ids)
        for job_id in job_ids:
            if place := under_way.get(job_id):
                self.admission.leave(job_id, *place, leaves=0)

    def _change(self, script: str, job_id: str, keys: str, *args: Any) -> int:
        """Run a script on `keys` (names of JobKeys) of a job; its arguments begin with `_head`."""
        names = JobKeys(job_id)
        return int(self._run(script, [getattr(names, key) for key in keys.split()], [*self._head(), *args]))

    def _leave(  # noqa: PLR0913 - those of a script
        self, script: str, job_id: str, keys: str, note: Note, found: WithHits, *args: Any, least: int = 1
    ) -> int:
        """Run a script that takes a note and hits: it has taken them where it returns `least` or more.

        What is known to stand in the job is not sent again; where a chunk of that is lost, all is.
        """
        blob, chunks = hit_blobs.pack(found, FAST if self._whole else STORED)
        for known in (self.known.of(job_id), set[str]()):
            there = [name for name in chunks if name in known]
            new = [part for name, chunk in chunks.items() if name not in known for part in (name, chunk)]
            with self._said_once(known, note) as wire:
                done = self._change(script, job_id, keys, wire, *args, blob, "".join(there), *new)
            if done != _CHUNK_LOST:
                break
            self.known.forget(job_id)
        known.update(chunks if done >= least else ())
        return done

    @staticmethod
    @contextmanager
    def _said_once(known: set[str], note: Note) -> Iterator[str]:
        """A note as its script takes it; its warnings are sent by one thread, which forgets them where that fails."""
        wire = note.wire(known)
        known.update(note.warnings)
        try:
            yield wire
        except RedisError:
            known.difference_update(note.warnings)
            raise

    def _head(self) -> list[float | int | str]:
        """Now (Unix seconds), TTL (s) and the longest event stream."""
        jobs = self.settings.jobs
        return [f"{self.clock.now():.6f}", jobs.ttl_s, jobs.max_events]

    def start_planning(self, job_id: str, claimant: str) -> bool:
        """From queued to planning. True when `claimant` (a task id) may plan."""
        return bool(self._change("start_planning", job_id, "job events", claimant, self.settings.jobs.redrive_after_s))

    def route(self, job_id: str, route: Route) -> bool:
        """Note how the question is read, while the job is planning. False when it is not (any more)."""
        return bool(self._change("route", job_id, "job events", as_json(route), route.aggregator))

    def start_searching(self, job_id: str, nodes: Sequence[Node]) -> bool:
        """From planning to searching, with the first nodes. False when the job has ended meanwhile."""
        keys = "job nodes leaves events work candidates chunks"
        return bool(self._change("start_searching", job_id, keys, *node_args(nodes)))

    def grow(self, job_id: str, branch_id: str, nodes: Sequence[Node]) -> bool:
        """A branch claims its children. False when it has grown before: then nothing may be added to the chord."""
        return bool(self._change("grow", job_id, "job nodes leaves events work", branch_id, *node_args(nodes)))

    def search_again(self, job_id: str, nodes: Sequence[Node]) -> bool:
        """Add leaves to a tree whose nodes have all ended, once a job. True for the one call that may send them."""
        return bool(self._change("search_again", job_id, "job nodes leaves events work", *node_args(nodes)))

    def bind(self, job_id: str, node: Node) -> bool:
        """A waiting leaf gets its bound query. True for the one call that may send it to be searched."""
        args = node.id, as_json(node), *node.depends_on
        return bool(self._change("bind", job_id, "job nodes leaves events work", *args))

    def put_candidates(self, job_id: str, node_id: str, found: SearchResult, note: Note = _NOTHING) -> bool:
        """Hand candidates to the rerank task."""
        return bool(
            self._leave("put_candidates", job_id, "job leaves candidates events work chunks", note, found, node_id)
        )

    def record_leaf(self, job_id: str, result: LeafResult, note: Note = _NOTHING) -> int:
        """Record a leaf once. Returns the nodes still open; negative when it did not count."""
        best = f"{result.hits[0].score:.6g}" if result.hits else ""
        args = result.node_id, result.status.value, len(result.hits), result.error or "", best
        keys = "job leaves results events chunks"
        return self._leave("record_leaf", job_id, keys, note, result, *args, least=0)

    def start_merging(self, job_id: str, claimant: str, *, force: bool = False) -> bool:
        """From searching to merging, when all nodes have ended or by force. True when `claimant` may merge."""
        args = claimant, self.settings.jobs.redrive_after_s, int(force)
        return bool(self._change("start_merging", job_id, "job events", *args))

    def put_pool(self, job_id: str, pool: MergedPool, note: Note = _NOTHING) -> bool:
        """Keep the merged pool for the root rerank."""
        return bool(self._leave("put_pool", job_id, "job pool chunks", note, pool))

    def start_summarising(self, job_id: str, pool: MergedPool, note: Note = _NOTHING) -> bool:
        """From merging to summarising, with the pool in its final order."""
        return bool(self._leave("start_summarising", job_id, "job pool events chunks", note, pool))

    def finish(self, job: Job, answer: Answer, item: str = "", manifest: Manifest | None = None) -> bool:
        """From summarising to done, and nobody is at `item` any more. True for the one call that ended the job."""
        own = JobKeys(job.id)
        packed, verdicts = hit_blobs.pack_answer(answer), ",".join(answer.verdicts)
        work = [own.results, own.pool, *(() if self._whole else (own.candidates, own.chunks))]
        return self._finish(job, work, packed, partial=answer.partial, last=(verdicts, item, pack_small(manifest)))

    def finish_ingest(self, job: Job, *, partial: bool) -> bool:
        """From finishing to done. True for the one call that ended the job."""
        own = IngestKeys(job.id)
        return self._finish(job, [own.inbox, own.line, own.seen], b"", partial=partial)

    def _finish(
        self, job: Job, work: Sequence[str], answer: bytes, *, partial: bool, last: tuple[str | bytes, ...] = ("",) * 3
    ) -> bool:
        """`work`: keys that go; `last`: verdicts, the item of the task, and the manifest."""
        own, tenant = JobKeys(job.id), job.request.tenant
        place, booked = self.admission.place(job.lane, tenant)
        keys = [own.job, own.answer, own.events, ACTIVE, *place, *work]
        ended = bool(self._run("finish", keys, [*self._head(), answer, int(partial), job.id, tenant, *booked, *last]))
        if ended:
            self.endings.on_end()
        return ended

    def stop(self, job: Job, state: State, reason: str) -> bool:
        """Any open state -> failed, cancelled or expired. True for the one call that ended the job."""
        return bool(self.endings.stop([job.id], state, reason))

    def redrive(
        self, job_id: str, state: State, token: int, why: str, items: Sequence[tuple[str, str, str]]
    ) -> frozenset[str]:
        """Which of these (item, node state seen, sent value seen) may be sent again: those that have not changed since.

        `token` is the reaper's fencing token: a reaper with an older one may send nothing. Without a `why` they are not
        counted as sent again: they were not lost, but have waited for a server.
        """
        keys = JobKeys(job_id)
        args: list[object] = [*self._head(), token, state.value, why]
        for name, seen, sent in items:
            args += [name, seen, sent, CLAIMS.get(name, ""), _ENDS_WAIT_OF.get(name, name)]
        granted = self._run("redrive", [keys.job, keys.leaves, keys.work, keys.events], args)
        return frozenset(text(name) for name in granted)

    def job(self, job_id: str) -> Job | None:
        """The header of a job, or None when it is unknown. Raises: DamagedError."""
        with damage_named():
            values = self.client.hmget(JobKeys(job_id).job, list(FIELDS))
        return read_job(job_id, dict(zip(FIELDS, values, strict=True)), self.clock.now())

    def place_of(self, job_id: str) -> tuple[Lane, str]:
        """Lane and tenant of a job, whose admission queue it belongs to. Raises: DamagedError."""
        lane, tenant = self.client.hmget(JobKeys(job_id).job, ["lane", "tenant"])
        fields = Fields({"lane": lane, "tenant": tenant})
        return fields.member("lane", Lane), fields.needed("tenant")

    def node(self, job_id: str, node_id: str) -> Node | None:
        """One node of the tree; None for one that is lost, or cannot be read."""
        raw = self.client.hget(JobKeys(job_id).nodes, node_id)
        return read_node(raw) if raw else None

    def nodes(self, job_id: str) -> dict[str, Node]:
        """The tree as far as it is known, in order of ids. Nodes that cannot be read are left out, as lost ones are."""
        found = [node for raw in self.client.hvals(JobKeys(job_id).nodes) if (node := read_node(raw)) is not None]
        return {node.id: node for node in sorted(found, key=lambda node: node_order(node.id))}

    def leaf_states(self, job_id: str) -> dict[str, str]:
        """Node id -> waiting, pending, searched, done, failed; branches: open, grown."""
        return {text(k): text(v) for k, v in self.client.hgetall(JobKeys(job_id).leaves).items()}

    def routed(self, job_id: str) -> Route | None:
        """How the job's question is read, once it is; None where that cannot be read.

        Raises: DamagedError when a newer release may be able to.
        """
        raw = self.client.hget(JobKeys(job_id).job, "route")
        try:
            return stored(Route, raw, "its route") if raw else None
        except DamagedError as error:
            if error.newer:
                raise
            return None

    def candidates(self, job_id: str, node_id: str, blob: bytes | None = None) -> SearchResult | None:
        """What the search task left for the rerank task. Its warnings came with it. `blob`: as it was read before."""
        raw = self.client.hget(JobKeys(job_id).candidates, node_id) if blob is None else blob
        try:
            found = None if raw is None else self._unpack(job_id, raw, SearchResult)
        except LostChunkError:
            return None
        self.known.of(job_id).update(found.warnings if found else ())
        return found

    def results(self, job_id: str, node_ids: Sequence[str] | None = None) -> dict[str, LeafResult]:
        """The recorded leaves: all, or those of `node_ids`. One that cannot be read counts as failed.

        Those of a job that is done stand in its answer.
        """
        keys = JobKeys(job_id)
        blobs = self.client.hgetall(keys.results)
        found = {text(name): self._recorded(job_id, text(name), blob) for name, blob in blobs.items()}
        if not found:
            found = {leaf.node_id: leaf for leaf in self._answered(job_id)}
        return found if node_ids is None else {name: found[name] for name in node_ids if name in found}

    def _answered(self, job_id: str) -> tuple[LeafResult, ...]:
        """The leaves of an answer; none where there is none, or it cannot be read."""
        try:
            blob: object = self.client.get(JobKeys(job_id).answer)
            return () if blob is None else hit_blobs.unpack_answer(blob).leaves
        except (ResponseError, ValueError, TypeError):
            return ()

    def _unpack(self, job_id: str, blob: object, kind: type[M]) -> M:
        """What was found for a job. Raises: as `hit_blobs.unpack`."""
        key = JobKeys(job_id).chunks
        return hit_blobs.unpack(blob, kind, lambda names: self.client.hmget(key, names), self.known.of(job_id))

    def _recorded(self, job_id: str, node_id: str, blob: object) -> LeafResult:
        try:
            return self._unpack(job_id, blob, LeafResult).model_copy(update={"node_id": node_id})
        except (ValueError, TypeError) as error:
            reason = f"its recorded result cannot be read ({type(error).__name__}): somebody else has written to it"
            return LeafResult(node_id=node_id, status=LeafStatus.FAILED, error=reason)

    def events(self, job_id: str, limit: int) -> list[dict[str, str]]:
        """The first `limit` events of a job, oldest first, without waiting for more."""
        entries: Any = self.client.xrange(JobKeys(job_id).events, count=limit)
        return [event for _, fields in entries for event in events_of(fields)]

    def pool(self, job_id: str) -> MergedPool | None:
        """The merged pool, once there is one; None also for one that cannot be read: it can be merged anew."""
        try:
            with damage_named():
                blob = self.client.get(JobKeys(job_id).pool)
                return None if blob is None else self._unpack(job_id, blob, MergedPool)
        except (DamagedError, ValueError):
            return None

    def annotate(
        self,
        job_id: str,
        cost: Cost | None = None,
        warnings: Iterable[str] = (),
        *,
        item: str = "",
        degraded: Iterable[str] = (),
    ) -> None:
        """Add to a job's costs and warnings, and to the reasons for what it was made without, at `item` of its work.

        `degraded`: codes of `Degradation`.

        Does nothing for a job that is gone.
        """
        note = Note(item, cost, tuple(warnings), degraded)
        with self._said_once(self.known.of(job_id), note) as wire:
            if wire:
                self._run("annotate", [JobKeys(job_id).job], [*self._head()[1:], wire])

    def next_check(self, job_ids: Mapping[str, float]) -> None:
        """When the reaper should check these jobs again (Unix seconds)."""
        if job_ids:
            self.client.zadd(ACTIVE, dict(job_ids), xx=True)

    def unwatched(self, job_ids: Sequence[str]) -> list[str]:
        """Those of these jobs that the reaper has no more to check: they have ended."""
        scores = self.client.zmscore(ACTIVE, list(job_ids)) if job_ids else []
        return [job_id for job_id, score in zip(job_ids, scores, strict=True) if score is None]

    def due(self, limit: int = 500) -> list[str]:
        """Jobs that the reaper should check now."""
        now = self.clock.now()
        return [text(job_id) for job_id in self.client.zrangebyscore(ACTIVE, "-inf", now, start=0, num=limit)]


def read_node(raw: str | bytes) -> Node | None:
    """A node as it is stored; None for one that cannot be read."""
    try:
        return stored(Node, raw, "a node")
    except DamagedError:
        return None
