"""Batches: many jobs under one id, with counts that add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from redis import Redis

from shared.connections.clock import ServerClock
from shared.jobs.budget import budget_fields, spending
from shared.jobs.codec import text, texts
from shared.jobs.keys import BatchKeys, JobKeys, id_time
from shared.jobs.scripts import Scripts
from shared.jobs.states import TERMINAL, Outcome, State, outcome_of, reasons_of
from shared.jobs.tenant_scope import no_such_batch
from shared.models import BatchStatus
from shared.models.cost import Budget
from shared.settings import Settings

_PAGE = 500
#: The counts in a batch's hash.
_COUNTS = (
    "lines", "enqueued", "known", "duplicate", "rejected", "blank", "open", *Outcome, "finished", "known_open",
)  # fmt: skip
_REASON = "reason:"
#: Ids of jobs without an answer that are kept.
MOST_FAILED = 200
#: Seconds by which a job may be entered before it is created.
_ENTERED_S = 120.0


class Batches:
    """Counts of batches. A job's end is counted once; what a crash left uncounted, `reconcile` counts."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock) -> None:
        self._client, self._clock = client, clock
        self._ttl = settings.jobs.ttl_s
        self._run = Scripts(client)

    def open(self, batch_id: str, budget: Budget | None = None, tenant: str | None = None) -> None:
        """Create an empty batch; `budget` is what all its jobs may spend together, `tenant` whose it is, if one's."""
        keys = BatchKeys(batch_id)
        fields: dict[Any, Any] = dict.fromkeys(_COUNTS, 0) | {"created_at": f"{self._clock.now():.3f}"}
        fields |= {"tenant": tenant} if tenant else {}
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hset(keys.batch, mapping=fields | budget_fields(budget or Budget()))
            pipe.expire(keys.batch, self._ttl)
            pipe.execute()

    def add(self, batch_id: str, job_ids: Sequence[str], rejected: int = 0) -> None:
        """Enter jobs (before they can end) and count refused questions. Entering a job again changes nothing."""
        keys = BatchKeys(batch_id)
        self._run("enter_in_batch", [keys.batch, keys.members], [self._ttl, rejected, *job_ids])

    def count(self, batch_id: str, job_id: str, outcome: Outcome, reasons: Iterable[str], client: Any = None) -> bool:
        """Count a job's end, once. `client`: a pipeline to put it into."""
        keys = BatchKeys(batch_id)
        args = [self._ttl, job_id, outcome.value, MOST_FAILED, *reasons]
        return bool(self._run("count_in_batch", [keys.batch, keys.members, keys.failed], args, client=client))

    def failed(self, batch_id: str) -> list[str]:
        """The last jobs that failed or expired, the newest first, at most MOST_FAILED."""
        return [text(job_id) for job_id in self._client.lrange(BatchKeys(batch_id).failed, 0, -1)]

    def forget(self, batch_id: str, job_ids: Sequence[str]) -> int:
        """Take out jobs that were entered but never created. Returns how many."""
        keys = BatchKeys(batch_id)
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                self._run("forget_in_batch", [keys.batch, keys.members], [job_id], client=pipe)
            return sum(pipe.execute()) if job_ids else 0

    def members(self, batch_id: str) -> Iterator[tuple[str, str]]:
        """All (job id, outcome or empty) of a batch, unordered. Raises: NotFoundError."""
        keys = BatchKeys(batch_id)
        if not self._client.exists(keys.batch):
            raise no_such_batch(batch_id)
        for job_id, state in self._client.hscan_iter(keys.members, count=_PAGE):
            yield text(job_id), text(state)

    def status(self, batch_id: str) -> BatchStatus:
        """The counts. Raises: NotFoundError."""
        raw = {text(k): text(v) for k, v in self._client.hgetall(BatchKeys(batch_id).batch).items()}
        if not raw:
            raise no_such_batch(batch_id)
        counts = {name: int(raw.get(name, 0)) for name in _COUNTS}
        reasons = {name.removeprefix(_REASON): int(n) for name, n in raw.items() if name.startswith(_REASON)}
        return BatchStatus(
            batch_id=batch_id, **counts, reasons=reasons, created_at=float(raw["created_at"]), tenant=raw.get("tenant"),
            budget=spending(raw, self._clock.now()), retry_of=raw.get("retry_of"), retried_as=raw.get("retried_as"),
        )  # fmt: skip

    def reconcile(self, batch_id: str) -> int:
        """Count jobs that ended without being counted (a worker died in between). Returns how many.

        Takes out what was entered a while ago but is no job: its client died before it was submitted.
        """
        uncounted = [job_id for job_id, state in self.members(batch_id) if not state]
        found, old = 0, self._clock.now() - _ENTERED_S
        for start in range(0, len(uncounted), _PAGE):
            page = uncounted[start : start + _PAGE]
            with self._client.pipeline(transaction=False) as pipe:
                for job_id in page:
                    pipe.hmget(JobKeys(job_id).job, ["state", "partial", "degraded"])
                rows = [texts(row) for row in pipe.execute()]
            for job_id, (state, partial, degraded) in zip(page, rows, strict=True):
                if state in TERMINAL:
                    codes = reasons_of(degraded)
                    outcome = outcome_of(State(state), partial=partial == "1", degraded=codes)
                    found += self.count(batch_id, job_id, outcome, codes)
            absent = [job_id for job_id, (state, *_) in zip(page, rows, strict=True) if not state]
            self.forget(batch_id, [job_id for job_id in absent if id_time(job_id) < old])
        return found
