"""Whether the turns of waiting jobs come in time, at the present pace of their lanes. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from redis.exceptions import ResponseError

from orchestrator.diagnosis.wording import duration
from shared.jobs import JobStore, State
from shared.jobs.fields import read_fields
from shared.jobs.footprint import Footprint, footprint
from shared.jobs.keys import JobKeys
from shared.jobs.tenant_scope import no_such_job
from shared.models import Lane

#: Members of a batch that are read, and how many of the open ones are looked at, evenly spread: it takes milliseconds.
_READ, _LOOKED_AT = 1_000, 100
_FIX = "give more with --queue-limit or jobs.queue_limit_s"
_FIELDS = ("state", "lane", "tenant", "created_at", "waits_until")


@dataclass(frozen=True)
class Outlook:
    """How many of the open jobs that were looked at will still wait when they may not any more.

    `limit_s`: how long these may wait, the least of them; `turn_s`: when the last one's turn would come, from now on.
    """

    looked_at: int = 0
    late: int = 0
    limit_s: float = 0.0
    turn_s: float = 0.0

    def expiring(self, open_jobs: int) -> int:
        """About how many of so many open jobs will expire before their turn comes."""
        return round(open_jobs * self.late / self.looked_at) if self.late else 0

    def sentence(self, whose: str) -> str:
        """Why they will expire. `whose` begins it: "its turn", say."""
        later = f"later than the {round(self.limit_s, 1):,g} s that queue_limit_s allows"
        return f"{whose} comes in about {duration(self.turn_s)} at the present pace, {later}"


def outlook_of_batch(store: JobStore, batch_id: str) -> Outlook:
    """Raises: NotFoundError, redis.exceptions.RedisError, ValueError for what cannot be read."""
    open_jobs = sorted(job_id for job_id, end in islice(store.batches.members(batch_id), _READ) if not end)
    return outlook(store, open_jobs[:: -(-len(open_jobs) // _LOOKED_AT) or 1])


def outlook(store: JobStore, job_ids: Sequence[str]) -> Outlook:
    """Raises: redis.exceptions.RedisError, ValueError for what cannot be read."""
    rows = read_fields(store.client, job_ids, _FIELDS)
    waiting = [(job_id, row) for job_id, row in zip(job_ids, rows, strict=True) if row[0] == State.QUEUED and row[4]]
    places = store.admission.positions([(job_id, Lane(row[1]), row[2]) for job_id, row in waiting])
    now, late = store.clock.now(), list[tuple[float, float]]()
    for (_, (_, _, _, created_at, waits_until)), place in zip(waiting, places, strict=True):
        if place.turn_s is not None and now + place.turn_s > float(waits_until):
            late.append((float(waits_until) - float(created_at), place.turn_s))
    if not late:
        return Outlook(looked_at=len(job_ids))
    return Outlook(len(job_ids), len(late), min(limit for limit, _ in late), max(turn for _, turn in late))


def job_too_slow(store: JobStore, job_id: str) -> str | None:
    """Why a job will expire at the present pace; None: it will not, or nobody knows.

    Raises: NotFoundError, redis.exceptions.RedisError.
    """
    if not store.client.exists(JobKeys(job_id).job):
        raise no_such_job(job_id)
    try:
        found = outlook(store, [job_id])
    except (ResponseError, ValueError):
        return None
    return f"{found.sentence('its turn')}: it will expire; {_FIX}" if found.late else None


def batch_too_slow(store: JobStore, batch_id: str) -> str | None:
    """Why and about how many jobs of a batch will expire at the present pace, and whether their answers will fit.

    None: none will expire and all fit, or nobody knows. Raises: NotFoundError, redis.exceptions.RedisError.
    """
    try:
        found, open_jobs = outlook_of_batch(store, batch_id), store.batches.status(batch_id).open
        memory = _too_large(footprint(store.client), open_jobs)
    except (ResponseError, ValueError):
        return None
    will = f"about {found.expiring(open_jobs):,} of its {open_jobs:,} open jobs will expire"
    slow = f"{found.sentence('the last turn of its jobs')}: {will}; {_FIX}" if found.late else ""
    return ". ".join(filter(None, (slow, memory))) or None


def _too_large(found: Footprint, open_jobs: int) -> str:
    """Whether Redis will be full before so many jobs have their answers; empty where they fit."""
    if not open_jobs or not found.too_much(open_jobs):
        return ""
    each = found.job_bytes / 1000
    return (
        f"the answers of its {open_jobs:,} open jobs need about {open_jobs * each / 1000:,.0f} MB ({each:,.0f} kB "
        f"each), and Redis has room for about {found.room:,} of them below its maxmemory: raise that, or keep less "
        "(jobs.keep)"
    )
