"""Reads the state of the job store for one scrape, in a bounded number of calls whatever the number of jobs.

Every part is read on its own: one that cannot be read is missing from the scrape, the others are there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from celery import Celery
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from orchestrator.reaper.reaper import LAST_RUN
from shared.cache_entries import AGES, SIZES, STATS
from shared.connections import heartbeat
from shared.connections.clock import ServerClock
from shared.connections.heartbeat import WorkerBeat
from shared.contract import Queue
from shared.jobs.codec import text
from shared.jobs.damaged import DamagedKeys
from shared.jobs.dead_letters import DeadKeys
from shared.jobs.keys import INGEST_ROOTS, AdmissionKeys, TotalKeys, WebhookKeys, id_time
from shared.jobs.totals import whole_numbers
from shared.models import Lane
from shared.providers.gates.state import GateState, read_gates
from shared.settings import Settings
from shared.tasks.broker import queued

#: Tenants of a lane's ring that are looked at, and jobs under way whose age is.
_MOST_TENANTS, _MOST_UNDER_WAY = 500, 2000
#: What stands for all tenants beyond `telemetry.metrics_tenants`.
OTHER = "other"
#: What of Redis is counted, in the order in which it is read.
KEPT = ("cache_bytes", "cache_entries", "dead_letters", "damaged_jobs", "ingests", "webhook_targets_waiting")
_INFO = ("used_memory", "maxmemory", "evicted_keys", "connected_clients", "rejected_connections", "rdb_last_save_time")
#: "ok" while what Redis writes to its disk arrives there.
_SAVED = ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")


@dataclass(frozen=True)
class LaneState:
    """One lane now. `waiting`, `under_way`: jobs by tenant, the largest ones and `other`; ages in seconds."""

    waiting: Mapping[str, int]
    under_way: Mapping[str, int]
    all_waiting: int
    oldest_waiting_s: float
    oldest_under_way_s: float


@dataclass(frozen=True)
class Snapshot:
    """What one scrape tells. Empty parts could not be read."""

    lanes: Mapping[Lane, LaneState] = field(default_factory=dict)
    jobs: Mapping[str, int] = field(default_factory=dict)
    runs: Mapping[str, int] = field(default_factory=dict)
    cache: Mapping[str, int] = field(default_factory=dict)
    webhooks: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    redis: Mapping[str, int] = field(default_factory=dict)
    queued: Mapping[Queue, int] = field(default_factory=dict)
    workers: Sequence[WorkerBeat] = ()
    gates: Sequence[GateState] = ()
    reaper_at: float | None = None
    up: bool = True
    seconds: float = 0.0


class _Ring(NamedTuple):
    """What is read of a lane at first."""

    tenants: list[str]
    counts: list[Any]
    held: dict[bytes, bytes]


class SnapshotReader:
    """Reads snapshots with one client. Never raises for what Redis or the broker says."""

    def __init__(self, client: Redis, app: Celery, settings: Settings) -> None:
        self._client, self._app, self._settings = client, app, settings

    def read(self) -> Snapshot:
        """One snapshot; `up` is False where Redis does not answer."""
        began = time.monotonic()
        try:
            found = self._store()
        except (RedisError, OSError):
            return Snapshot(up=False, seconds=time.monotonic() - began)
        more: dict[str, Any] = {}
        for name, read in (("queued", self._queued), ("workers", self._workers), ("gates", self._gates)):
            try:
                more[name] = read()
            except (RedisError, OperationalError, OSError, ValueError):
                continue
        return Snapshot(**found, **more, seconds=time.monotonic() - began)

    def _queued(self) -> dict[Queue, int]:
        return queued(self._app, self._settings)

    def _workers(self) -> Sequence[WorkerBeat]:
        return heartbeat.workers(self._client)

    def _gates(self) -> list[GateState]:
        return read_gates(self._client, self._settings)

    def _store(self) -> dict[str, Any]:
        with self._client.pipeline(transaction=False) as pipe:
            for lane in Lane:
                keys = AdmissionKeys(lane.value)
                pipe.lrange(keys.ring, 0, _MOST_TENANTS - 1)
                pipe.hmget(keys.counts, ["waiting", "held"])
                pipe.hscan(keys.held, count=_MOST_TENANTS)
            pipe.hscan(AdmissionKeys.under_way, count=_MOST_UNDER_WAY)
            for key in (TotalKeys.jobs, TotalKeys.runs, STATS, WebhookKeys.counts):
                pipe.hgetall(key)
            pipe.get(LAST_RUN)
            pipe.hget(SIZES, "total")
            pipe.zcard(AGES)
            pipe.hlen(DeadKeys.dead_letters)
            pipe.zcard(DamagedKeys.since)
            pipe.hlen(INGEST_ROOTS)
            pipe.zcard(WebhookKeys.due)
            pipe.info()
            replies = [_none_for_damage(reply) for reply in pipe.execute(raise_on_error=False)]
        rings = {
            lane: _Ring([text(one) for one in replies[at] or ()], replies[at + 1] or [], _page(replies[at + 2]))
            for at, lane in zip(range(0, len(replies), 3), Lane, strict=False)
        }
        under_way, jobs, runs, cache, webhooks, reaper, *sizes, info = replies[3 * len(Lane) :]
        return {
            "lanes": self._lanes(rings, _page(under_way)),
            "jobs": whole_numbers(jobs or {}),
            "runs": whole_numbers(runs or {}),
            "cache": whole_numbers(cache or {}),
            "webhooks": whole_numbers(webhooks or {}),
            "reaper_at": _number(reaper),
            "sizes": {name: int(_number(value) or 0) for name, value in zip(KEPT, sizes, strict=True)},
            "redis": _of_redis(info or {}),
        }

    def _lanes(self, rings: Mapping[Lane, _Ring], under_way: Mapping[bytes, bytes]) -> dict[Lane, LaneState]:
        with self._client.pipeline(transaction=False) as pipe:
            for lane, ring in rings.items():
                for tenant in ring.tenants:
                    pipe.zcard(AdmissionKeys(lane.value).waiting + tenant)
                    pipe.zrange(AdmissionKeys(lane.value).waiting + tenant, 0, 0, withscores=True)
            queues = iter([_none_for_damage(reply) for reply in pipe.execute(raise_on_error=False)])
        now = ServerClock(self._client).now()
        return {lane: self._lane(lane, ring, queues, under_way, now) for lane, ring in rings.items()}

    def _lane(self, lane: Lane, ring: _Ring, queues: Any, under_way: Mapping[bytes, bytes], now: float) -> LaneState:
        waiting, oldest = dict[str, int](), list[float]()
        for tenant in ring.tenants:
            waiting[tenant], first = next(queues) or 0, next(queues)
            oldest += [at for _, at in first or ()]
        begun = [id_time(text(job_id)) for job_id, place in under_way.items() if text(place).startswith(f"{lane} ")]
        all_waiting, held = (int(_number(value) or 0) for value in (*ring.counts, None, None)[:2])
        return LaneState(
            waiting=self._largest(waiting, all_waiting),
            under_way=self._largest({text(name): int(_number(by) or 0) for name, by in ring.held.items()}, held),
            all_waiting=all_waiting,
            oldest_waiting_s=max(0.0, now - min(oldest, default=now)),
            oldest_under_way_s=max(0.0, now - min(begun, default=now)),
        )

    def _largest(self, by_tenant: Mapping[str, int], total: int) -> dict[str, int]:
        """Those with most jobs, and all others together."""
        most = sorted((name for name, jobs in by_tenant.items() if jobs > 0), key=lambda name: (-by_tenant[name], name))
        found = {name: by_tenant[name] for name in most[: self._settings.telemetry.metrics_tenants] if name != OTHER}
        return {**found, OTHER: max(0, total - sum(found.values()))}


def _none_for_damage(reply: Any) -> Any:
    """A key of another type is not there. Raises: any other error."""
    if isinstance(reply, ResponseError):
        return None
    if isinstance(reply, Exception):
        raise reply
    return reply


def _page(reply: Any) -> dict[bytes, bytes]:
    return reply[1] if reply else {}


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def _of_redis(info: Mapping[str, Any]) -> dict[str, int]:
    """What INFO tells of `_INFO`, and as `saving` whether Redis can write to its disk."""
    found = {name: int(info[name]) for name in _INFO if name in info}
    told = [info[name] for name in _SAVED if name in info]
    return {**found, "saving": int(set(told) == {"ok"})} if told else found
