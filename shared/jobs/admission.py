"""Admission: the queues in which jobs wait, one per lane and tenant, bounded, served in deficit round robin.

A job that waits is no message: 100,000 of them cost the broker nothing, and leave again one by one (cancel, expiry).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from redis import Redis

from shared.connections.clock import ServerClock
from shared.contract import rank
from shared.jobs.codec import text
from shared.jobs.keys import ACTIVE, RECENT, AdmissionKeys, JobKeys
from shared.jobs.scripts import Scripts
from shared.models import Lane
from shared.settings import Settings

#: Seconds past the deadline after which a job that still waits is ended.
_WAIT_GRACE_S = 5.0
#: Leaves that one turn of a tenant is worth: about what a question branches into.
QUANTUM = 6
#: Ends of jobs that the rate of a lane is computed from, and how many it takes at least.
_ENDS, _LEAST_ENDS = 64, 4
_MOST_ADMITTED = 256  # by one call of the script


class EnqueueResult(IntEnum):
    """The outcome for one job that was to be enqueued."""

    TAKEN = 1
    KNOWN = 0
    LANE_FULL = -1
    TENANT_FULL = -2


@dataclass(frozen=True)
class NewJob:
    """A job to be enqueued: its deadline (Unix seconds) and its hash as field, value, field, value..."""

    job_id: str
    tenant: str
    deadline: float
    fields: Sequence[str]


@dataclass(frozen=True)
class QueuePosition:
    """Where a job stands. `ahead`: jobs of its tenant before it; `ends_per_s`: of its lane, None while unknown."""

    lane: Lane
    waiting: bool
    under_way: bool
    ahead: int
    tenants: int
    lane_waiting: int
    lane_under_way: int
    ends_per_s: float | None


class AdmissionQueues:
    """The queues of all lanes. Every method may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._ttl = settings.jobs.ttl_s
        self._run = Scripts(client)

    def enter(self, lane: Lane, jobs: Sequence[NewJob]) -> list[EnqueueResult]:
        """Create queued jobs in the queues of their tenants, as far as these have room, all in one step."""
        keys = AdmissionKeys(lane.value)
        args: list[Any] = [f"{self._clock.now():.6f}", self._ttl, *self.capacity(lane), _WAIT_GRACE_S]
        names = [keys.ring, keys.counts, ACTIVE, RECENT]
        for job in jobs:
            names += [JobKeys(job.job_id).job, keys.waiting + job.tenant]
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
            window, prefix = self._settings.lanes.under_way, AdmissionKeys(lane.value).waiting
            args = self._ttl, window, QUANTUM, lane.value, prefix, _MOST_ADMITTED
            out = self._call("admit", lane, "ring counts held deficit under_way", *args)
            for job_id, _, own in zip(out[::3], out[1::3], out[2::3], strict=True):
                yield text(job_id), rank(lane, int(own))

    def leave(self, job_id: str, lane: Lane, tenant: str, leaves: int, client: Any = None) -> Any:
        """Give back the place of a job that has ended. Harmless to repeat. `client`: a pipeline to put it into."""
        args = f"{self._clock.now():.3f}", self._ttl, job_id, tenant, QUANTUM, leaves, _ENDS
        return self._call("leave", lane, "ring counts held deficit under_way ends", *args, tenant=tenant, client=client)

    def readmit(self, job_id: str, lane: Lane, tenant: str, created_at: float, *, runs: bool) -> bool:
        """Put back a job that neither waits nor is under way though it should. True when it was missing."""
        args = self._ttl, job_id, tenant, lane.value, f"{created_at:.6f}", int(runs)
        return bool(self._call("readmit", lane, "ring counts held under_way", *args, tenant=tenant))

    def repair(self, lane: Lane, tenants: Iterable[str], *, recount: bool) -> int:
        """Give turns to those of `tenants` that wait without one, and count waiting and running jobs anew.

        Returns how many corrections were made.
        """
        args = self._ttl, lane.value, AdmissionKeys(lane.value).waiting, int(recount), *tenants
        return int(self._call("repair", lane, "ring counts held under_way", *args))

    def _call(
        self, script: str, lane: Lane, keys: str, *args: Any, tenant: str | None = None, client: Any = None
    ) -> Any:
        """Run a script on `keys` (names of AdmissionKeys) of a lane, and on the queue of `tenant` if given."""
        of_lane = AdmissionKeys(lane.value)
        queue = [] if tenant is None else [of_lane.waiting + tenant]
        return self._run(script, [getattr(of_lane, key) for key in keys.split()] + queue, list(args), client=client)

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
        rate = None
        if len(ends) >= _LEAST_ENDS:
            rate = len(ends) / max(0.001, self._clock.now() - float(ends[-1]))
        return QueuePosition(
            lane=lane, waiting=ahead is not None, under_way=bool(held), ahead=int(ahead or 0), tenants=int(tenants),
            lane_waiting=waiting, lane_under_way=under_way, ends_per_s=rate,
        )  # fmt: skip
