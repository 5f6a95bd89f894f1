"""What operators look at, of all tenants: the queues of lanes, worker pools, gates of servers, the cache, Redis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from celery import Celery
from pydantic import Field

from shared.cache import Cache, CacheStats
from shared.connections.heartbeat import SilentWorker, ages, silent_workers, workers
from shared.contract import POOL_QUEUES
from shared.jobs import JobStore, reachable
from shared.jobs.admission import pace
from shared.jobs.codec import text
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.footprint import footprint
from shared.jobs.keys import ACTIVE, RECENT, AdmissionKeys
from shared.models import Lane
from shared.models.base import Model
from shared.providers.gates.state import GateState, read_gates
from shared.tasks.broker import queued


class TenantShare(Model):
    """Jobs of one tenant in a lane."""

    tenant: str
    waiting: int = 0
    under_way: int = 0


class LaneLoad(Model):
    """One lane: jobs that wait and that are under way, of at most `room` and `window`, and by tenant.

    `ends_per_s`: how many jobs a second end at the present pace; None while nobody knows.
    """

    lane: str
    waiting: int
    room: int
    under_way: int
    window: int
    ends_per_s: float | None = None
    tenants: tuple[TenantShare, ...] = ()


class PoolWorker(Model):
    """One worker process; `age_s`: seconds since its last heartbeat, `longest_s`: how long its oldest task takes."""

    worker: str
    queues: tuple[str, ...]
    threads: int = 0
    running: int = 0
    longest_s: float = 0.0
    age_s: float = 0.0


class PoolState(Model):
    """One pool: messages that wait in its queues, workers that serve these, and those that live and do not answer."""

    pool: str
    queues: dict[str, int]
    workers: tuple[PoolWorker, ...] = ()
    silent: tuple[SilentWorker, ...] = ()


class CacheKind(Model):
    """What the cache keeps of one kind, and how often that was reused."""

    kind: str
    entries: int
    bytes: int
    asked: int
    reused: float


class CacheState(Model):
    """The cache by kind; `max_mb`: what all of it may take."""

    kinds: tuple[CacheKind, ...]
    max_mb: int


class Stats(Model):
    """Counts of this Ramify. Memory is that of Redis, in bytes; a `limit` of 0 is none.

    `job_bytes`: what a job takes that has ended.
    """

    jobs_kept: int = Field(ge=0)
    jobs_open: int = Field(ge=0)
    dead_letters: int = Field(ge=0)
    memory_used: int = Field(ge=0)
    memory_limit: int = Field(ge=0)
    job_bytes: int = Field(ge=0)


class Operator:
    """Looks at what runs. Every method raises NotRunningError when Redis does not answer."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._app, self._jobs, self._redis = app, jobs, jobs.client

    def lanes(self) -> tuple[LaneLoad, ...]:
        """Every lane, interactive first."""
        with reachable(self._jobs.settings):
            return tuple(self._lane(lane) for lane in Lane)

    def _lane(self, lane: Lane) -> LaneLoad:
        keys = AdmissionKeys(lane.value)
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.lrange(keys.ring, 0, -1)
            pipe.hmget(keys.counts, ["waiting", "held"])
            pipe.lrange(keys.ends, 0, -1)
            pipe.hgetall(keys.held)
            ring, counts, ends, held = pipe.execute()
        waiting, under_way = (int(value or 0) for value in counts)
        own = {text(tenant): int(count) for tenant, count in held.items() if int(count)}
        tenants = sorted({*map(text, ring), *own})
        with self._redis.pipeline(transaction=False) as pipe:
            for tenant in tenants:
                pipe.zcard(keys.waiting + tenant)
            shares = zip(tenants, pipe.execute(), strict=True)
        return LaneLoad(
            lane=lane.value,
            waiting=waiting,
            room=self._jobs.admission.capacity(lane)[0],
            under_way=under_way,
            window=self._jobs.settings.lanes.under_way,
            ends_per_s=pace([float(at) for at in ends], self._jobs.clock.now(), busy=under_way > 0),
            tenants=tuple(
                TenantShare(tenant=tenant, waiting=count, under_way=own.get(tenant, 0)) for tenant, count in shares
            ),
        )

    def pools(self) -> tuple[PoolState, ...]:
        """Every pool of the contract, with or without workers."""
        settings = self._jobs.settings
        with reachable(settings):
            lengths, beats = queued(self._app, settings), workers(self._redis)
            seen, silent = ages(self._redis), silent_workers(self._redis)
        return tuple(
            PoolState(
                pool=pool,
                queues={queue.value: lengths[queue] for queue in queues},
                workers=tuple(
                    PoolWorker(
                        worker=beat.worker,
                        queues=beat.queues,
                        threads=beat.threads,
                        running=beat.running,
                        longest_s=beat.longest_s,
                        age_s=round(seen.get(beat.worker, 0.0), 1),
                    )
                    for beat in beats
                    if not set(queues).isdisjoint(beat.queues)  # one may serve several pools
                ),
                silent=tuple(one for one in silent if one.pool == pool),
            )
            for pool, queues in POOL_QUEUES.items()
        )

    def gates(self) -> tuple[GateState, ...]:
        """The gates of the servers that the settings name."""
        with reachable(self._jobs.settings):
            return tuple(read_gates(self._redis, self._jobs.settings))

    def stats(self) -> Stats:
        """Counts, in three round trips."""
        with reachable(self._jobs.settings):
            found = footprint(self._redis)
            kept: Any = self._redis.zcard(RECENT)
            active: Any = self._redis.zcard(ACTIVE)
            dead = DeadLetterStore(self._redis, self._jobs.settings).count()
        return Stats(
            jobs_kept=kept,
            jobs_open=active,
            dead_letters=dead,
            memory_used=found.used,
            memory_limit=found.limit,
            job_bytes=found.job_bytes,
        )

    def cache(self) -> CacheState:
        """What is computed once and kept, by kind."""
        with reachable(self._jobs.settings):
            cache = Cache(self._redis, self._jobs.settings)
            return CacheState(kinds=tuple(cache_kinds(cache)), max_mb=cache.settings.max_mb)

    def clear_cache(self) -> int:
        """Delete all entries of the cache, at the cost of computing them again; returns how many."""
        with reachable(self._jobs.settings):
            return Cache(self._redis, self._jobs.settings).clear()


def cache_kinds(cache: Cache) -> Iterator[CacheKind]:
    """The cache by kind."""
    sizes, stats = cache.sizes(), cache.stats()
    for kind in sorted({*sizes, *stats}):
        entries, size = sizes.get(kind, (0, 0))
        told = stats.get(kind, CacheStats())
        yield CacheKind(kind=kind, entries=entries, bytes=size, asked=told.asked, reused=round(told.hit_rate, 3))
