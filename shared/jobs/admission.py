"""Admission: the queues in which jobs wait, one per lane and tenant, bounded, served in deficit round robin.

A job that waits is no message: 100,000 of them cost the broker nothing, and leave again one by one (cancel, expiry).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import to_json
from redis import Redis

from shared.connections.clock import ServerClock
from shared.contract import ranks
from shared.jobs.budget import budget_fields
from shared.jobs.codec import text
from shared.jobs.keys import ACTIVE, RECENT, AdmissionKeys, JobKeys
from shared.jobs.scripts import Scripts
from shared.models import Lane
from shared.models.cost import Budget
from shared.settings import Settings

#: Leaves that one turn of a tenant is worth: about what a question branches into.
QUANTUM = 6
#: Ends of jobs that the pace of a lane is computed from, and how many it takes at least.
_ENDS, _LEAST_ENDS = 64, 4
#: Keys of a lane for a script that gives a place back.
_PLACE = "ring counts held deficit under_way ends"
#: What is wrong with an idempotency key that was used before, as the end of a sentence.
KEY_TAKEN = "was used before with another question or other options: repeat those, or choose another key"
#: Why a line of a batch with such a key is rejected.
KEY_OF_ANOTHER = f"its idempotency key {KEY_TAKEN}"
_MOST_TAKEN = 256  # out of the queues of a lane, by one call of the script


class EnqueueResult(IntEnum):
    """The outcome for one job that was to be enqueued."""

    TAKEN = 1
    KNOWN = 0
    LANE_FULL = -1
    TENANT_FULL = -2
    OTHER_REQUEST = -3


class NewJob(NamedTuple):
    """A job to be enqueued: how many seconds it may wait, and its hash.

    `alike`: fields that many new jobs have alike, as field, value, field, value...; `fields`: those of its own.
    `request`: as JSON. `idempotency`: where the id of the first job of its idempotency key is kept, if it has one,
    with the `digest` of its request.
    """

    job_id: str
    lane: Lane
    tenant: str
    queue_limit_s: float
    alike: tuple[str, ...]
    question: str
    request: str
    fields: Sequence[str] = ()
    idempotency: str = ""
    digest: str = ""


@lru_cache(maxsize=64)
def alike_fields(
    lane: Lane, tenant: str, seconds: float, limits: Sequence[float | None], batch_id: str | None
) -> tuple[str, ...]:
    """Fields of the hash of a new job that many have alike. `limits`: those of a budget, in its order."""
    budget = Budget.of_valid(dict(zip(Budget.model_fields, limits, strict=True)))
    fields = {
        "lane": lane.value,
        "tenant": tenant,
        "deadline_s": f"{min(seconds, budget.max_seconds or seconds):g}",
        **dict.fromkeys(("leaves_total", "leaves_done", "leaves_failed"), "0"),
        **budget_fields(budget),
        **({"batch_id": batch_id} if batch_id else {}),
    }
    return tuple(part for pair in fields.items() for part in pair)


@dataclass(frozen=True)
class Enqueued:
    """What became of a job that was to be enqueued; `job_id` is the known one's where there was one before."""

    result: EnqueueResult
    job_id: str


@dataclass(frozen=True)
class Turns:
    """What one look at the queues gave.

    `begin`: (id, priority of its messages) of the jobs whose turn it is, each under way from now on.
    `more`: the queues were not looked at to the end.
    `overdue`: id -> seconds that it might wait, of the jobs that have waited too long; they are to be ended.
    """

    begin: list[tuple[str, int]] = field(default_factory=list)
    more: bool = False
    overdue: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class QueuePosition:
    """Where a job stands. `ahead`: jobs of its tenant before it; `ends_per_s`: of its lane, None while unknown.

    `turn_s`: in about how many seconds its turn comes at that pace, None when it does not wait or nobody knows.
    """

    lane: Lane
    waiting: bool
    under_way: bool
    ahead: int
    tenants: int
    lane_waiting: int
    lane_under_way: int
    ends_per_s: float | None

    @property
    def turn_s(self) -> float | None:
        if not self.waiting or not self.ends_per_s:
            return None
        return min((self.ahead + 1) * max(1, self.tenants), self.lane_waiting) / self.ends_per_s


def pace(ends: Sequence[float], now: float, *, busy: bool) -> float | None:
    """Jobs a second that a lane has ended while it had any under way; None while too few have ended.

    `ends`: Unix seconds, the newest first, as the lane's list has them: when a job ended, or, negative, when the first
    one began after the lane had been idle. `busy`: it has jobs under way now.
    """
    count, span, since = 0, 0.0, None
    for at in reversed(ends):
        if at >= 0 and since is not None:
            count, span = count + 1, span + at - since
        since = abs(at)
    if busy and since is not None:
        span += now - since
    return count / max(0.001, span) if count >= _LEAST_ENDS else None


def waited_too_long(limit_s: float) -> str:
    """Why a job ended whose turn had not come: the same words for all of one limit, so that they count as one error."""
    return f"it waited for {round(limit_s, 1):,g} s, all that queue_limit_s allows, and its turn had not come"


class AdmissionQueues:
    """The queues of all lanes. Every method may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._ttl = settings.jobs.ttl_s
        self._run = Scripts(client)

    def enter(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Create queued jobs in the queues of their tenants, as far as these have room, all in one step."""
        places, given = self.given(jobs)
        out = self._run("enqueue", [ACTIVE, RECENT, *places], [*self.head(), to_json(given)])
        return [
            Enqueued(EnqueueResult(int(verdict)), text(job_id))
            for verdict, job_id in zip(out[::2], out[1::2], strict=True)
        ]

    def head(self) -> list[Any]:
        """The first arguments of a script that creates jobs."""
        return [f"{self._clock.now():.6f}", self._ttl]

    def given(self, jobs: Iterable[NewJob]) -> tuple[list[str], dict[str, Any]]:
        """The keys of the queues of new jobs, and what `create.lua` reads of the jobs."""
        numbers: dict[tuple[Lane, str, float, tuple[str, ...]], int] = {}
        rows = [
            (
                numbers.setdefault((job.lane, job.tenant, job.queue_limit_s, job.alike), len(numbers)), job.job_id,
                job.idempotency, job.digest, job.question, job.request, *job.fields,
            )
            for job in jobs
        ]  # fmt: skip
        keys = [key for lane, tenant, *_ in numbers for key in self._queue_keys(AdmissionKeys(lane.value), tenant)]
        places = [(tenant, *self.capacity(lane), f"{limit_s:.3f}", *alike) for lane, tenant, limit_s, alike in numbers]
        return keys, {"places": places, "jobs": rows}

    @staticmethod
    def _queue_keys(of_lane: AdmissionKeys, tenant: str) -> tuple[str, str, str]:
        return of_lane.waiting + tenant, of_lane.ring, of_lane.counts

    def refusal(self, result: EnqueueResult, lane: Lane, tenant: str = "") -> str:
        """Why a job found no room, as a sentence."""
        most, share = self.capacity(lane)
        setting = f"lanes.max_waiting_{'interactive' if lane is Lane.INTERACTIVE else 'batch'}"
        if result is EnqueueResult.TENANT_FULL:
            whose = f"tenant {tenant}" if tenant else "its tenant"
            why = f"{whose} has {share:,} jobs waiting in the {lane.value} lane, its share of {setting}"
        else:
            why = f"{most:,} jobs wait in the {lane.value} lane, all that {setting} allows"
        return f"{why}: try again when some have ended, or raise the setting"

    def capacity(self, lane: Lane) -> tuple[int, int]:
        """How many jobs may wait in a lane, and how many of one tenant."""
        lanes = self._settings.lanes
        most = lanes.max_waiting_interactive if lane is Lane.INTERACTIVE else lanes.max_waiting_batch
        return most, max(1, int(most * lanes.tenant_share))

    def admit(self) -> Turns:
        """The next jobs of both lanes, as far as there is room; each has its deadline from now on."""
        before, behind = JobKeys("\n").job.split("\n")
        args: list[Any] = [f"{self._clock.now():.6f}", self._ttl, self._settings.lanes.under_way, QUANTUM, _MOST_TAKEN]
        args, keys = [*args, before, behind], [AdmissionKeys.under_way]
        for lane in Lane:
            of_lane, priorities = AdmissionKeys(lane.value), ranks(lane)
            keys += [of_lane.ring, of_lane.counts, of_lane.held, of_lane.deficit, of_lane.ends]
            args += [lane.value, of_lane.waiting, len(priorities), *priorities]
        begin, overdue, more = self._run("admit", keys, args)
        return Turns(
            begin=list(zip(map(text, begin[::2]), map(int, begin[1::2]), strict=True)),
            overdue=dict(zip(map(text, overdue[::2]), map(float, overdue[1::2]), strict=True)),
            more=bool(more),
        )

    @staticmethod
    def place(lane: Lane, tenant: str) -> tuple[list[str], list[Any]]:
        """Keys and last arguments of a script that gives a place back."""
        of_lane = AdmissionKeys(lane.value)
        keys = [getattr(of_lane, key) for key in _PLACE.split()]
        return [*keys, of_lane.waiting + tenant], [QUANTUM, _ENDS]

    def leave(self, job_id: str, lane: Lane, tenant: str, leaves: int, client: Any = None) -> Any:
        """Give back the place of a job that has ended. Harmless to repeat. `client`: a pipeline to put it into."""
        args = f"{self._clock.now():.3f}", self._ttl, job_id, tenant, QUANTUM, leaves, _ENDS
        return self._call("leave", lane, _PLACE, *args, tenant=tenant, client=client)

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
        return self.positions([(job_id, lane, tenant)])[0]

    def positions(self, jobs: Sequence[tuple[str, Lane, str]]) -> list[QueuePosition]:
        """Where these (job id, lane, tenant) stand now, in one round trip."""
        with self._client.pipeline(transaction=False) as pipe:
            for lane in Lane:
                keys = AdmissionKeys(lane.value)
                pipe.llen(keys.ring)
                pipe.hmget(keys.counts, ["waiting", "held"])
                pipe.lrange(keys.ends, 0, -1)
            for job_id, lane, tenant in jobs:
                pipe.zrank(AdmissionKeys(lane.value).waiting + tenant, job_id)
                pipe.hexists(AdmissionKeys.under_way, job_id)
            rows = iter(pipe.execute())
        of_lane = {lane: self._lane_fields(lane, next(rows), next(rows), next(rows)) for lane in Lane}
        return [
            QueuePosition(waiting=ahead is not None, ahead=int(ahead or 0), under_way=bool(next(rows)), **of_lane[lane])
            for (_, lane, _), ahead in ((job, next(rows)) for job in jobs)
        ]

    def _lane_fields(self, lane: Lane, tenants: Any, counts: Any, ends: Any) -> dict[str, Any]:
        waiting, under_way = (int(value or 0) for value in counts)
        ends_per_s = pace([float(at) for at in ends], self._clock.now(), busy=under_way > 0)
        return {
            "lane": lane, "tenants": int(tenants), "lane_waiting": waiting, "lane_under_way": under_way,
            "ends_per_s": ends_per_s,
        }  # fmt: skip
