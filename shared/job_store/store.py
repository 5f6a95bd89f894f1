"""Every change of a job, each one Lua script (A4). Reading for people is in `reader`, batches in `batches`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from redis import Redis

from shared.job_store import codec
from shared.job_store.batches import Batches
from shared.job_store.codec import text
from shared.job_store.job import FIELDS, Job, read_job
from shared.job_store.keys import ACTIVE, RECENT, JobKeys, idempotency, is_shadow
from shared.job_store.ledger import budget_fields, within
from shared.job_store.nodes import as_json, triples
from shared.job_store.scripts import Scripts
from shared.job_store.states import State
from shared.models import Answer, Cost, JobRequest, LeafResult, MergedPool, Node, SearchResult
from shared.models.route import Route
from shared.settings import Settings

MAX_WARNINGS = 100


class JobStore:
    """The truth about jobs. All methods may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self.client = client
        self.settings = settings
        self.batches = Batches(client, settings)
        self._run = Scripts(client)

    # -- intake ------------------------------------------------------------------------------------------------

    def reserve(self, request: JobRequest, job_id: str) -> tuple[str, bool]:
        """The id under which `request` runs, and whether that job exists already (idempotency, A1)."""
        if request.idempotency_key is None:
            return job_id, False
        key = idempotency(request.tenant, request.idempotency_key)
        if self.client.set(key, job_id, nx=True, ex=self.settings.jobs.ttl_s):
            return job_id, False
        first = self.client.get(key)
        known = text(first) if first is not None else job_id
        return known, bool(self.client.exists(JobKeys(known).job))

    def create(self, jobs: Sequence[tuple[str, JobRequest]], batch_id: str | None = None) -> None:
        """Create queued jobs in one round trip. The sweep knows of a job before it exists, so none is forgotten."""
        now, ttl = time.time(), self.settings.jobs.ttl_s
        with self.client.pipeline(transaction=False) as pipe:
            for job_id, request in jobs:
                keys = JobKeys(job_id)
                fields = self._fields(job_id, request, now, batch_id)
                pipe.zadd(ACTIVE, {job_id: now + self.settings.jobs.redrive_after_s})
                self._run("create", [keys.job, keys.events], [*self._head(now), *fields], client=pipe)
                if not is_shadow(job_id):
                    pipe.zadd(RECENT, {job_id: now})
            pipe.zremrangebyscore(RECENT, "-inf", now - ttl)
            pipe.expire(ACTIVE, ttl)
            pipe.expire(RECENT, ttl)
            pipe.execute()

    def _fields(self, job_id: str, request: JobRequest, now: float, batch_id: str | None) -> list[str]:
        request = within(request, self.settings)
        jobs = self.settings.jobs
        deadline = request.deadline_s or (jobs.deadline_s if request.lane == "interactive" else jobs.batch_deadline_s)
        deadline = min(deadline, request.max_seconds or deadline)
        fields = {
            "id": job_id,
            "question": request.question,
            "lane": request.lane.value,
            "tenant": request.tenant,
            "deadline_at": f"{now + deadline:.3f}",
            "request": request.model_dump_json(exclude_defaults=True),
            "leaves_total": "0",
            "leaves_done": "0",
            "leaves_failed": "0",
            **budget_fields(request),
        }
        if batch_id:
            fields["batch_id"] = batch_id
        return [item for pair in fields.items() for item in pair]

    # -- reading what a step needs ---------------------------------------------------------------------------------

    def job(self, job_id: str) -> Job | None:
        """The header of a job, or None when it is unknown."""
        values = self.client.hmget(JobKeys(job_id).job, list(FIELDS))
        fields = zip(FIELDS, values, strict=True)
        return read_job(job_id, {name: text(value) if value is not None else None for name, value in fields})

    def node(self, job_id: str, node_id: str) -> Node | None:
        """One node of the tree."""
        raw = self.client.hget(JobKeys(job_id).nodes, node_id)
        return Node.model_validate_json(raw) if raw else None

    def nodes(self, job_id: str) -> dict[str, Node]:
        """The tree as far as it is known, in order of ids."""
        found = [Node.model_validate_json(raw) for raw in self.client.hvals(JobKeys(job_id).nodes)]
        return {node.id: node for node in sorted(found, key=lambda node: [int(part) for part in node.id.split(".")])}

    def leaf_states(self, job_id: str) -> dict[str, str]:
        """Node id -> waiting, pending, searched, done, failed; branches: open, grown."""
        return {text(k): text(v) for k, v in self.client.hgetall(JobKeys(job_id).leaves).items()}

    def routed(self, job_id: str) -> Route | None:
        """How the job's question is read, once it is."""
        raw = self.client.hget(JobKeys(job_id).job, "route")
        return Route.model_validate_json(raw) if raw else None

    def candidates(self, job_id: str, node_id: str) -> SearchResult | None:
        """What the search step left for the rerank step."""
        raw = self.client.hget(JobKeys(job_id).candidates, node_id)
        return codec.unpack(raw, SearchResult) if raw else None

    def results(self, job_id: str, node_ids: Sequence[str] | None = None) -> dict[str, LeafResult]:
        """The recorded leaves: all, or those of `node_ids`."""
        key = JobKeys(job_id).results
        if node_ids is None:
            found: list[tuple[str, object]] = [(text(key), blob) for key, blob in self.client.hgetall(key).items()]
        else:
            found = list(zip(node_ids, self.client.hmget(key, list(node_ids)) if node_ids else [], strict=True))
        return {node_id: codec.unpack(blob, LeafResult) for node_id, blob in found if blob is not None}

    def pool(self, job_id: str) -> MergedPool | None:
        """The merged pool, once there is one."""
        raw = self.client.get(JobKeys(job_id).pool)
        return codec.unpack(raw, MergedPool) if isinstance(raw, bytes) else None

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
        args = [*self._head(), *triples(nodes)]
        return bool(self._run("start_searching", [keys.job, keys.nodes, keys.leaves, keys.events], args))

    def grow(self, job_id: str, branch_id: str, nodes: Sequence[Node]) -> bool:
        """A branch claims its children. False when it has grown before: then nothing may be added to the chord."""
        keys = JobKeys(job_id)
        args = [*self._head(), branch_id, *triples(nodes)]
        return bool(self._run("grow", [keys.job, keys.nodes, keys.leaves, keys.events], args))

    def bind(self, job_id: str, node: Node) -> bool:
        """A waiting leaf gets its bound query (G13). True for the one call that may send it to be searched."""
        keys = JobKeys(job_id)
        args = [*self._head(), node.id, as_json(node), *node.depends_on]
        return bool(self._run("bind", [keys.job, keys.nodes, keys.leaves, keys.events], args))

    def put_candidates(self, job_id: str, node_id: str, found: SearchResult) -> bool:
        """Hand candidates to the rerank step."""
        keys = JobKeys(job_id)
        args = [*self._head(), node_id, codec.pack(found)]
        return bool(self._run("put_candidates", [keys.job, keys.leaves, keys.candidates, keys.events], args))

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
            self._ended(job, State.DONE, partial=answer.partial)
        return ended

    def stop(self, job: Job, state: State, reason: str) -> bool:
        """Any open state -> failed, cancelled or expired. True for the one call that ended the job."""
        keys = JobKeys(job.id)
        args = [*self._head(), state.value, reason]
        ended = bool(self._run("stop", [keys.job, keys.candidates, keys.events], args))
        if ended:
            self._ended(job, state, partial=False)
        return ended

    def _ended(self, job: Job, state: State, *, partial: bool) -> None:
        if job.batch_id:
            self.batches.count(job.batch_id, job.id, state, partial=partial)
        self.client.zrem(ACTIVE, job.id)

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
        """When the sweep should look at these jobs again (Unix seconds)."""
        if job_ids:
            self.client.zadd(ACTIVE, dict(job_ids), xx=True)

    def due(self, limit: int = 500) -> list[str]:
        """Jobs that the sweep should look at now."""
        return [text(job_id) for job_id in self.client.zrangebyscore(ACTIVE, "-inf", time.time(), start=0, num=limit)]

    def forget(self, job_id: str) -> None:
        """Take an ended or vanished job off the sweep's list."""
        self.client.zrem(ACTIVE, job_id)

    def _head(self, now: float | None = None) -> list[float | int | str]:
        jobs = self.settings.jobs
        return [f"{now or time.time():.3f}", jobs.ttl_s, jobs.max_events]
