"""The lines in which jobs wait for their turn: one per lane and tenant, bounded, served in deficit round robin.

A job that waits is no message: 100,000 of them cost the broker nothing, and leave again one by one (cancel, expiry).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from redis import Redis

from shared.connections.clock import Clock
from shared.contract import rank
from shared.jobs.codec import text
from shared.jobs.keys import ACTIVE, RECENT, AdmissionKeys, JobKeys
from shared.jobs.scripts import Scripts
from shared.models import Lane
from shared.settings import Settings

#: Seconds past the deadline after which a job that still waits is ended.
GRACE_S = 5.0
#: Leaves that a turn is worth: about what a question branches into.
QUANTUM = 6
#: Ends that the pace of a lane is read from.
_ENDS = 64
_AT_ONCE = 256


class EnqueueResult(IntEnum):
    """What became of a job that was to be enqueued."""

    TAKEN = 1
    KNOWN = 0
    LANE_FULL = -1
    TENANT_FULL = -2


@dataclass(frozen=True)
class NewJob:
    """A job as it enters a line: its deadline (Unix seconds) and the fields of its hash."""

    job_id: str
    tenant: str
    deadline: float
    fields: Sequence[str]


@dataclass(frozen=True)
class QueuePosition:
    """Where a job stands. `ahead`: jobs of its tenant before it; `pace`: ends a second in its lane, or None."""

    lane: Lane
    waiting: bool
    under_way: bool
    ahead: int
    tenants: int
    lane_waiting: int
    lane_under_way: int
    pace: float | None


class AdmissionQueues:
    """All lines. Every method may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: Clock) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._run = Scripts(client)

    def enter(self, lane: Lane, jobs: Sequence[NewJob]) -> list[EnqueueResult]:
        """Create queued jobs and put them into the lines of their tenants, as far as these have room. At once."""
        keys, most = AdmissionKeys(lane.value), self.capacity(lane)
        args: list[Any] = [f"{self._clock.now():.6f}", self._settings.jobs.ttl_s, *most, GRACE_S]
        names = [keys.ring, keys.counts, ACTIVE, RECENT]
        for job in jobs:
            own = JobKeys(job.job_id)
            names += [own.job, keys.waiting + job.tenant]
            args += [job.job_id, job.tenant, f"{job.deadline:.3f}", len(job.fields), *job.fields]
        return [EnqueueResult(int(verdict)) for verdict in self._run("enqueue", names, args)]

    def capacity(self, lane: Lane) -> tuple[int, int]:
        """How many jobs may wait in a lane, and how many of one tenant."""
        lanes = self._settings.lanes
        most = lanes.max_waiting_interactive if lane is Lane.INTERACTIVE else lanes.max_waiting_batch
        return most, max(1, int(most * lanes.tenant_share))

    def admit(self) -> Iterator[tuple[str, int]]:
        """(job id, priority of its messages) of the jobs whose turn it is; each is under way from now on."""
        for lane in Lane:
            keys = AdmissionKeys(lane.value)
            names = [keys.ring, keys.counts, keys.held, keys.deficit, keys.under_way]
            window, ttl = self._settings.lanes.under_way, self._settings.jobs.ttl_s
            out = self._run("admit", names, [ttl, window, QUANTUM, lane.value, keys.waiting, _AT_ONCE])
            for job_id, _, own in zip(out[::3], out[1::3], out[2::3], strict=True):
                yield text(job_id), rank(lane, int(own))

    def leave(self, job_id: str, lane: Lane, tenant: str, leaves: int, client: Any = None) -> Any:
        """Give a job's place back: it has ended. Harmless to repeat. `client`: a pipeline to put it into."""
        keys = AdmissionKeys(lane.value)
        names = [keys.ring, keys.counts, keys.held, keys.deficit, keys.under_way, keys.ends, keys.waiting + tenant]
        ttl = self._settings.jobs.ttl_s
        args = [f"{self._clock.now():.3f}", ttl, job_id, tenant, QUANTUM, leaves, _ENDS]
        return self._run("leave", names, args, client=client)

    def readmit(self, job_id: str, lane: Lane, tenant: str, created_at: float, *, runs: bool) -> bool:
        """Put a job back that is in no line and not under way though it should be. True when it was."""
        keys = AdmissionKeys(lane.value)
        names = [keys.ring, keys.counts, keys.held, keys.under_way, keys.waiting + tenant]
        args = [self._settings.jobs.ttl_s, job_id, tenant, lane.value, f"{created_at:.6f}", int(runs)]
        return bool(self._run("rejoin", names, args))

    def repair(self, lane: Lane, tenants: Iterable[str], *, recount: bool) -> int:
        """Give turns to those of `tenants` that wait without, and count again what waits and what is under way.

        Returns how many things were put right.
        """
        keys = AdmissionKeys(lane.value)
        names = [keys.ring, keys.counts, keys.held, keys.under_way]
        return int(
            self._run("mend", names, [self._settings.jobs.ttl_s, lane.value, keys.waiting, int(recount), *tenants])
        )

    def under_way(self) -> dict[str, tuple[Lane, str]]:
        """Job id -> lane and tenant of all that are under way; bounded by the windows."""
        found = {}
        for job_id, entry in self._client.hgetall(AdmissionKeys.under_way).items():
            lane, _, tenant = text(entry).partition(" ")
            if lane in set(Lane):
                found[text(job_id)] = (Lane(lane), tenant)
        return found

    def position(self, job_id: str, lane: Lane, tenant: str) -> QueuePosition:
        """Where a job stands now."""
        keys = AdmissionKeys(lane.value)
        with self._client.pipeline(transaction=False) as pipe:
            pipe.zrank(keys.waiting + tenant, job_id)
            pipe.hexists(keys.under_way, job_id)
            pipe.llen(keys.ring)
            pipe.hmget(keys.counts, ["waiting", "held"])
            pipe.lrange(keys.ends, 0, -1)
            ahead, held, tenants, counts, ends = pipe.execute()
        waiting, under_way = (int(value or 0) for value in counts)
        return QueuePosition(
            lane=lane, waiting=ahead is not None, under_way=bool(held), ahead=int(ahead or 0), tenants=int(tenants),
            lane_waiting=waiting, lane_under_way=under_way, pace=self._pace([float(end) for end in ends]),
        )  # fmt: skip

    def _pace(self, ends: Sequence[float]) -> float | None:
        """Jobs a second, by the last ends; None while there are too few to tell."""
        if len(ends) < 4:
            return None
        return len(ends) / max(0.001, self._clock.now() - ends[-1])
