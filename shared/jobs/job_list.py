"""Lists of jobs, newest first, by what a caller asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from redis import Redis

from shared.jobs.codec import text
from shared.jobs.fields import Fields
from shared.jobs.keys import RECENT, BatchKeys, JobKeys
from shared.jobs.reader import JobReader
from shared.jobs.states import TERMINAL, Outcome, State, outcome_of
from shared.jobs.tenant_scope import TenantScope
from shared.models import JobStatus
from shared.models.degraded import codes

_PAGE = 500
#: Jobs that are looked at for one list: a second or two.
MOST_LOOKED_AT = 100_000
_FIELDS = ("state", "partial", "degraded")
OPEN = "open"
#: What a list can be asked for: states, outcomes of ended jobs, and all that have not ended.
STATES = (*dict.fromkeys([*State, *Outcome]), OPEN)


class JobList(list[JobStatus]):
    """Jobs, newest first. `cut`: there are more jobs than were looked at, and some may be wanted.

    `looked_at`: how many those were, of one tenant's only its own.
    """

    looked_at: int = 0
    cut: bool = False


@dataclass(frozen=True)
class JobFilter:
    """Which jobs are wanted, of `tenant`; None: all.

    `states`: one of these, of STATES; none: any. `batch`: the jobs of a batch and those that its lines name;
    `degraded`: with this reason, or with any (True), or with none (False).
    """

    states: frozenset[str] = frozenset()
    batch: str | None = None
    tenant: str | None = None
    degraded: bool | str | None = None

    def wants(self, row: Fields) -> bool:
        """Whether a job of the tenant is wanted, by `_FIELDS`."""
        state, reasons = row.text("state"), codes(row.text("degraded"))
        names = {state, OPEN}
        if state in TERMINAL:
            names = {state, outcome_of(State(state), partial=row.text("partial") == "1", degraded=reasons)}
        fits = self.degraded in (reasons if isinstance(self.degraded, str) else {None, bool(reasons)})
        return fits and not (self.states and self.states.isdisjoint(names))


def newest_jobs(client: Redis, limit: int, wanted: JobFilter) -> JobList:
    """The newest jobs that are wanted. May raise redis.exceptions.RedisError."""
    found, read = JobList(), 0
    reader, ids, scope = JobReader(client), _newest(client, wanted.batch), TenantScope(client, wanted.tenant)
    while len(found) < limit and (page := list(islice(ids, min(_PAGE, MOST_LOOKED_AT - read)))):
        read += len(page)
        own = scope.own_jobs(page)
        found.looked_at += len(own)
        fit = own if wanted == JobFilter(tenant=wanted.tenant) else _fitting(client, own, wanted)
        found += reader.statuses(fit[: limit - len(found)])
    found.cut = len(found) < limit and next(ids, None) is not None
    return found


def _newest(client: Redis, batch: str | None) -> Iterator[str]:
    """Ids of all jobs or of one batch's, newest first."""
    if batch is None:
        start = 0
        while page := client.zrevrange(RECENT, start, start + _PAGE - 1):
            yield from map(text, page)
            start += len(page)
        return
    keys = BatchKeys(batch)
    named = (text(job_id) for key in (keys.members, keys.known) for job_id, _ in client.hscan_iter(key, count=_PAGE))
    yield from sorted(islice(named, 2 * MOST_LOOKED_AT), reverse=True)


def _fitting(client: Redis, job_ids: list[str], wanted: JobFilter) -> list[str]:
    with client.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            pipe.hmget(JobKeys(job_id).job, list(_FIELDS))
        rows = pipe.execute(raise_on_error=False)
    return [
        job_id
        for job_id, row in zip(job_ids, rows, strict=True)
        if isinstance(row, list) and row[0] and wanted.wants(Fields(dict(zip(_FIELDS, row, strict=True)), []))
    ]
