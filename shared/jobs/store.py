"""Every change of a job, each one Lua script, and what its steps read. Reading for people is in `reader`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from redis import Redis

from shared.connections.clock import Clock, ServerClock
from shared.jobs import codec
from shared.jobs.admission import AdmissionQueues, EnqueueResult, NewJob
from shared.jobs.batches import Batches
from shared.jobs.budget import budget_fields, with_default_budget
from shared.jobs.codec import text
from shared.jobs.endings import Endings, Retries
from shared.jobs.job import FIELDS, Job, read_job
from shared.jobs.keys import ACTIVE, JobKeys, idempotency
from shared.jobs.scripts import Scripts, as_json, node_args
from shared.jobs.states import State
from shared.jobs.work import CLAIMS, WorkLog
from shared.models import Answer, Cost, JobRequest, Lane, LeafResult, LeafStatus, MergedPool, Node, SearchResult
from shared.models.plan import node_order
from shared.models.route import Route
from shared.settings import Settings

MAX_WARNINGS = 100


class JobStore:
    """The truth about jobs. All methods may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: Clock | None = None) -> None:
        self.client, self.settings = client, settings
        self.clock = clock or ServerClock(client)
        self.batches = Batches(client, settings, self.clock)
        self.admission = AdmissionQueues(client, settings, self.clock)
        self.work = WorkLog(client, settings, self.clock)
        self.endings = Endings(client, settings, self.clock, self.batches, self.admission)
        self.retries = Retries(client, settings)
        self._run = Scripts(client)

    # -- intake ------------------------------------------------------------------------------------------------

    def reserve(self, request: JobRequest, job_id: str) -> tuple[str, bool]:
        """The id under which `request` runs, and whether that job exists already (idempotency)."""
        if request.idempotency_key is None:
            return job_id, False
        key = idempotency(request.tenant, request.idempotency_key)
        if self.client.set(key, job_id, nx=True, ex=self.settings.jobs.ttl_s):
            return job_id, False
        first = self.client.get(key)
        known = text(first) if first is not None else job_id
        return known, bool(self.client.exists(JobKeys(known).job))

    def enqueue(
        self,
        jobs: Sequence[tuple[str, JobRequest]],
        batch_id: str | None = None,
        retry_of: Mapping[str, str] | None = None,
    ) -> list[EnqueueResult]:
        """Create queued jobs in the lines of their tenants, as far as there is room. What became of each.

        `retry_of`: the job that each tries again.
        """
        old = retry_of or {}
        now, entries = self.clock.now(), dict[str, EnqueueResult]()
        for lane in Lane:
            mine = [(job_id, request) for job_id, request in jobs if request.lane is lane]
            comers = [self._newcomer(job_id, request, now, batch_id, old.get(job_id)) for job_id, request in mine]
            if comers:
                entries.update(zip((comer.job_id for comer in comers), self.admission.enter(lane, comers), strict=True))
        return [entries[job_id] for job_id, _ in jobs]

    def _newcomer(
        self, job_id: str, request: JobRequest, now: float, batch_id: str | None, retry_of: str | None
    ) -> NewJob:
        deadline = now + _deadline_of(request, self.settings)
        more = {"batch_id": batch_id, "retry_of": retry_of}
        return NewJob(job_id, request.tenant, deadline, _new_fields(job_id, request, self.settings, deadline, more))

    def admitted(self, jobs: Sequence[tuple[str, int]]) -> list[str]:
        """Note that these (job id, priority) are under way. Returns those that are to be sent; the ended ones leave."""
        with self.client.pipeline(transaction=False) as pipe:
            for job_id, priority in jobs:
                self._run("admitted", [JobKeys(job_id).job], [self._head()[0], priority], client=pipe)
            verdicts = pipe.execute()
        gone = [job_id for (job_id, _), verdict in zip(jobs, verdicts, strict=True) if verdict == -1]
        self.release(gone)
        return [job_id for (job_id, _), verdict in zip(jobs, verdicts, strict=True) if verdict == 1]

    def release(self, job_ids: Sequence[str]) -> None:
        """Give back the places of jobs that have ended, or are gone altogether."""
        under_way = self.admission.under_way() if job_ids else {}
        self.endings.finalise(job_ids)
        for job_id in job_ids:
            if place := under_way.get(job_id):
                self.admission.leave(job_id, *place, leaves=0)

    # -- transitions, one script each --------------------------------------------------------------------------

    def start_planning(self, job_id: str, claimant: str) -> bool:
        """From queued to planning. True when `claimant` (a task id) may plan."""
        keys = JobKeys(job_id)
        args = [*self._head(), claimant, self.settings.jobs.redrive_after_s]
        return bool(self._run("start_planning", [keys.job, keys.events], args))

    def route(self, job_id: str, route: Route) -> bool:
        """Note how the question is read, while the job is planning. False when it is not (any more)."""
        keys = JobKeys(job_id)
        args = [*self._head(), as_json(route), route.aggregator]
        return bool(self._run("route", [keys.job, keys.events], args))

    def start_searching(self, job_id: str, nodes: Sequence[Node]) -> bool:
        """From planning to searching, with the first nodes. False when the job has ended meanwhile."""
        keys = JobKeys(job_id)
        args = [*self._head(), *node_args(nodes)]
        return bool(self._run("start_searching", [keys.job, keys.nodes, keys.leaves, keys.events, keys.work], args))

    def grow(self, job_id: str, branch_id: str, nodes: Sequence[Node]) -> bool:
        """A branch claims its children. False when it has grown before: then nothing may be added to the chord."""
        keys = JobKeys(job_id)
        args = [*self._head(), branch_id, *node_args(nodes)]
        return bool(self._run("grow", [keys.job, keys.nodes, keys.leaves, keys.events, keys.work], args))

    def bind(self, job_id: str, node: Node) -> bool:
        """A waiting leaf gets its bound query. True for the one call that may send it to be searched."""
        keys = JobKeys(job_id)
        args = [*self._head(), node.id, as_json(node), *node.depends_on]
        return bool(self._run("bind", [keys.job, keys.nodes, keys.leaves, keys.events, keys.work], args))

    def put_candidates(self, job_id: str, node_id: str, found: SearchResult) -> bool:
        """Hand candidates to the rerank step."""
        keys = JobKeys(job_id)
        args = [*self._head(), node_id, codec.pack(found)]
        return bool(self._run("put_candidates", [keys.job, keys.leaves, keys.candidates, keys.events, keys.work], args))

    def record_leaf(self, job_id: str, result: LeafResult) -> int:
        """Record a leaf once. Returns the nodes still open; negative when it did not count."""
        keys = JobKeys(job_id)
        args = [*self._head(), result.node_id, result.status.value, codec.pack(result), len(result.hits)]
        names = [keys.job, keys.leaves, keys.results, keys.candidates, keys.events]
        return int(self._run("record_leaf", names, [*args, result.error or ""]))

    def start_merging(self, job_id: str, claimant: str, *, force: bool = False) -> bool:
        """From searching to merging, when all nodes are settled or by force. True when `claimant` may merge."""
        keys = JobKeys(job_id)
        args = [*self._head(), claimant, self.settings.jobs.redrive_after_s, int(force)]
        return bool(self._run("start_merging", [keys.job, keys.events], args))

    def put_pool(self, job_id: str, pool: MergedPool) -> bool:
        """Keep the merged pool for the root rerank."""
        keys = JobKeys(job_id)
        now, ttl, _ = self._head()
        return bool(self._run("put_pool", [keys.job, keys.pool], [now, ttl, codec.pack(pool)]))

    def start_summarising(self, job_id: str, pool: MergedPool) -> bool:
        """From merging to summarising, with the pool in its final order."""
        keys = JobKeys(job_id)
        args = [*self._head(), codec.pack(pool)]
        return bool(self._run("start_summarising", [keys.job, keys.pool, keys.events], args))

    def claim_summary(self, job_id: str, claimant: str) -> bool:
        """True when `claimant` may write the summary."""
        args = [self._head()[0], claimant, self.settings.jobs.redrive_after_s]
        return bool(self._run("claim_summary", [JobKeys(job_id).job], args))

    def finish(self, job: Job, answer: Answer) -> bool:
        """From summarising to done. True for the one call that ended the job."""
        keys = JobKeys(job.id)
        args = [*self._head(), codec.pack(answer), int(answer.partial)]
        ended = bool(self._run("finish", [keys.job, keys.answer, keys.candidates, keys.events], args))
        if ended:
            self.endings.finalise([job.id])
            self.endings.on_end()
        return ended

    def stop(self, job: Job, state: State, reason: str) -> bool:
        """Any open state -> failed, cancelled or expired. True for the one call that ended the job."""
        return bool(self.endings.stop([job.id], state, reason))

    def redrive(
        self, job_id: str, state: State, token: int, why: str, items: Sequence[tuple[str, str, str]]
    ) -> frozenset[str]:
        """Leave to send items (name, state of the node seen, time of sending seen) again: those that are as they were.

        `token` is the reaper's fencing token: an older reaper than the last one gets no leave.
        """
        keys = JobKeys(job_id)
        args: list[object] = [*self._head(), token, state.value, why]
        for name, seen, sent in items:
            args += [name, seen, sent, CLAIMS.get(name, "")]
        granted = self._run("redrive", [keys.job, keys.leaves, keys.work, keys.events], args)
        return frozenset(text(name) for name in granted)

    # -- reading -----------------------------------------------------------------------------------------------

    def job(self, job_id: str) -> Job | None:
        """The header of a job, or None when it is unknown."""
        values = self.client.hmget(JobKeys(job_id).job, list(FIELDS))
        fields = zip(FIELDS, values, strict=True)
        found = {name: text(value) if value is not None else None for name, value in fields}
        return read_job(job_id, found, self.clock.now())

    def node(self, job_id: str, node_id: str) -> Node | None:
        """One node of the tree."""
        raw = self.client.hget(JobKeys(job_id).nodes, node_id)
        return Node.model_validate_json(raw) if raw else None

    def nodes(self, job_id: str) -> dict[str, Node]:
        """The tree as far as it is known, in order of ids."""
        found = [Node.model_validate_json(raw) for raw in self.client.hvals(JobKeys(job_id).nodes)]
        return {node.id: node for node in sorted(found, key=lambda node: node_order(node.id))}

    def leaf_states(self, job_id: str) -> dict[str, str]:
        """Node id -> waiting, pending, searched, done, failed; branches: open, grown."""
        return {text(k): text(v) for k, v in self.client.hgetall(JobKeys(job_id).leaves).items()}

    def all_settled(self, job_id: str) -> bool:
        """True while a job is searching and none of its nodes is open any more: its body may run."""
        state, left = self.client.hmget(JobKeys(job_id).job, ["state", "open"])
        return state == b"searching" and left is not None and int(left) <= 0

    def routed(self, job_id: str) -> Route | None:
        """How the job's question is read, once it is."""
        raw = self.client.hget(JobKeys(job_id).job, "route")
        return Route.model_validate_json(raw) if raw else None

    def candidates(self, job_id: str, node_id: str) -> SearchResult | None:
        """What the search step left for the rerank step."""
        raw = self.client.hget(JobKeys(job_id).candidates, node_id)
        return codec.unpack(raw, SearchResult) if raw else None

    def results(self, job_id: str, node_ids: Sequence[str] | None = None) -> dict[str, LeafResult]:
        """The recorded leaves: all, or those of `node_ids`. One that cannot be read has failed, and says so."""
        key = JobKeys(job_id).results
        if node_ids is None:
            found: list[tuple[str, object]] = [(text(key), blob) for key, blob in self.client.hgetall(key).items()]
        else:
            found = list(zip(node_ids, self.client.hmget(key, list(node_ids)) if node_ids else [], strict=True))
        return {node_id: _recorded(node_id, blob) for node_id, blob in found if blob is not None}

    def events(self, job_id: str, limit: int) -> list[dict[str, str]]:
        """The first `limit` events of a job, oldest first, without waiting for more."""
        entries: Any = self.client.xrange(JobKeys(job_id).events, count=limit)
        return [{text(name): text(value) for name, value in fields.items()} for _, fields in entries]

    def pool(self, job_id: str) -> MergedPool | None:
        """The merged pool, once there is one."""
        raw = self.client.get(JobKeys(job_id).pool)
        return codec.unpack(raw, MergedPool) if isinstance(raw, bytes) else None

    # -- notes along the way -----------------------------------------------------------------------------------

    def annotate(self, job_id: str, cost: Cost | None = None, warnings: Iterable[str] = ()) -> None:
        """Add to a job's costs and warnings. Does nothing for a job that is gone."""
        spent = {name: value for name, value in (cost or Cost()) if value}
        said = list(dict.fromkeys(warnings))
        if not spent and not said:
            return
        keys, jobs = JobKeys(job_id), self.settings.jobs
        pairs = [item for name, value in spent.items() for item in (f"cost:{name}", value)]
        args = [jobs.ttl_s, jobs.max_events, MAX_WARNINGS, len(spent), *pairs, *said]
        self._run("annotate", [keys.job, keys.warnings, keys.events], args)

    def next_check(self, job_ids: Mapping[str, float]) -> None:
        """When the reaper should look at these jobs again (Unix seconds)."""
        if job_ids:
            self.client.zadd(ACTIVE, dict(job_ids), xx=True)

    def due(self, limit: int = 500) -> list[str]:
        """Jobs that the reaper should look at now."""
        now = self.clock.now()
        return [text(job_id) for job_id in self.client.zrangebyscore(ACTIVE, "-inf", now, start=0, num=limit)]

    def _head(self, now: float | None = None) -> list[float | int | str]:
        jobs = self.settings.jobs
        return [f"{now or self.clock.now():.6f}", jobs.ttl_s, jobs.max_events]


def _recorded(node_id: str, blob: object) -> LeafResult:
    try:
        return codec.unpack(blob, LeafResult).model_copy(update={"node_id": node_id})
    except (ValueError, TypeError) as error:
        reason = f"its recorded result cannot be read ({type(error).__name__}): somebody else has written to it"
        return LeafResult(node_id=node_id, status=LeafStatus.FAILED, error=reason)


def _deadline_of(request: JobRequest, settings: Settings) -> float:
    """Seconds that a job has, from its submission."""
    jobs = settings.jobs
    usual = jobs.deadline_s if request.lane is Lane.INTERACTIVE else jobs.batch_deadline_s
    deadline = request.deadline_s or usual
    return min(deadline, with_default_budget(request, settings).max_seconds or deadline)


def _new_fields(
    job_id: str, request: JobRequest, settings: Settings, deadline_at: float, more: Mapping[str, str | None]
) -> list[str]:
    """Field, value pairs. `more` are fields of this job alone; those that are None or empty are left out."""
    request = with_default_budget(request, settings)
    fields = {
        "id": job_id,
        "question": request.question,
        "lane": request.lane.value,
        "tenant": request.tenant,
        "deadline_at": f"{deadline_at:.3f}",
        "request": request.model_dump_json(exclude_defaults=True),
        "leaves_total": "0",
        "leaves_done": "0",
        "leaves_failed": "0",
        **budget_fields(request),
        **{name: value for name, value in more.items() if value},
    }
    return [item for pair in fields.items() for item in pair]
