"""`ramify doctor` on Redis: what INFO says, what waits in the queues, what the caches saved.

INFO is read as Redis 6.2 and later write it; a field that a release does not have counts as fine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import redis as redis_client

from orchestrator.local.checks import (
    NOT_RUNNING,
    START,
    Check,
    failed,
    passed,
    quick_client,
    redis_fixes,
    size,
    unknown,
)
from shared.cache import Cache
from shared.connections.addresses import Address
from shared.connections.quarantine import Quarantine
from shared.connections.redis_errors import redis_fault
from shared.contract import PRIORITY_STEPS, Queue, queue_keys
from shared.jobs.footprint import footprint
from shared.settings import Settings

Info = Mapping[str, Any]
#: Share of maxmemory, or of the connections, from which on a limit is reported as near.
_NEAR = 0.9
#: A replica that is further behind would lose jobs in a failover.
_BEHIND_S, _BEHIND_BYTES = 10, 10_000_000


def redis(settings: Settings | None, *, own: bool = False) -> Sequence[Check]:
    """What Redis says of itself, what waits in the queues, and what the caches saved. `own`: redis.url names it."""
    if settings is None:
        return [unknown(name, NOT_RUNNING, START) for name in ("redis", "queues")]
    try:
        with quick_client(settings) as client:
            found = read_info(client.info(), own=own)
            return [*found, *_queues_and_caches(client, settings)] if found[0].ok else found
    except redis_client.RedisError as error:
        where = Address(settings.redis).label
        detail = f"{where} {redis_fault(error) or f'does not answer: {error}'}"
        return [failed("redis", detail, f"look at the Redis at {where}" if own else "start it, or correct redis.url")]


def _queues_and_caches(client: redis_client.Redis, settings: Settings) -> Sequence[Check]:
    """A Redis that takes no changes may refuse these reads too; what INFO says is shown all the same."""
    try:
        return (*_queues(client, settings), *_quarantine(client), _caches(client, settings), _answers(client))
    except redis_client.RedisError as error:
        return (unknown("queues", f"cannot be asked: Redis {redis_fault(error) or type(error).__name__}"),)


def _queues(client: redis_client.Redis, settings: Settings) -> Iterator[Check]:
    """Nothing where RabbitMQ holds them (`checks_broker`)."""
    if settings.broker.rabbitmq:
        return
    if settings.broker.url.get_secret_value():
        yield unknown("queues", "in the Redis that broker.url names: ask its own tools")
        return
    with client.pipeline(transaction=False) as pipe:
        for queue in Queue:
            for key in queue_keys(queue):
                pipe.llen(key)
        lengths = iter(pipe.execute())
    half, waiting = len(PRIORITY_STEPS) // 2, []  # the steps of the interactive lane stand first
    for queue in Queue:
        steps = [int(next(lengths)) for _ in PRIORITY_STEPS]
        if any(steps):
            waiting.append(f"{queue} {sum(steps[:half])}+{sum(steps[half:])}")
    yield passed("queues", f"waiting, interactive+batch: {', '.join(waiting)}" if waiting else "nothing waits")


def _quarantine(client: redis_client.Redis) -> Iterator[Check]:
    """Nothing where nothing was set aside."""
    if kept := list(Quarantine(client).list()):
        reasons = ", ".join(sorted({f"{one.reason} ({one.found_in})" for one in kept}))
        detail = f"{len(kept)} things in Redis are not Ramify's: {reasons}"
        yield failed("quarantine", detail, "see who writes there: `ramify dead quarantine`; --drop forgets them")


def _caches(client: redis_client.Redis, settings: Settings) -> Check:
    """How often something was reused instead of computed, by kind."""
    if not settings.cache.enabled:
        return unknown("cache", "switched off (cache.enabled)")
    stats = Cache(client, settings).stats()
    detail = ", ".join(f"{kind} {found.hit_rate:.0%} of {found.asked}" for kind, found in stats.items())
    kept = size(sum(number for _, number in Cache(client, settings).sizes().values()))
    return passed("cache", f"reused: {detail}; {kept}" if detail else "nothing asked yet")


def _answers(client: redis_client.Redis) -> Check:
    """What a job takes that has ended, and how many more there is room for."""
    found = footprint(client)
    if not found.measured:
        return passed("redis memory of jobs", "no job has ended yet")
    room = f"; room for {found.room:,} more" if found.limit else ""
    detail = f"{size(found.job_bytes)} a job that has ended (the last {found.measured}){room}"
    fix = "raise maxmemory, keep jobs for less long (jobs.ttl_s) or less of them (jobs.keep)"
    return (
        passed("redis memory of jobs", detail)
        if found.room or not found.limit
        else failed("redis memory of jobs", detail, fix)
    )


def read_info(info: Info, *, own: bool = False) -> Sequence[Check]:
    """What Redis says about itself, in reading order; pure. While it loads its file, only that."""
    if _number(info, "loading"):
        done, left = _number(info, "loading_loaded_perc"), _number(info, "loading_eta_seconds")
        detail = f"is loading its file: {done:.0f} % done, about {left:.0f} s to go"
        return [failed("redis", detail, "wait; workers and clients come back by themselves")]
    used = size(_number(info, "used_memory"))
    answers = passed("redis", f"answers, version {info.get('redis_version')}, {used} in use")
    return [
        answers,
        *_fixes(info, own=own),
        *_role(info),
        _persistence(info),
        _policy(info),
        *_memory(info),
        *_clients(info),
    ]


def _fixes(info: Info, *, own: bool) -> Iterator[Check]:
    """Nothing for a release with the known security fixes. Valkey says a Redis version besides its own."""
    product = "Valkey" if "valkey_version" in info else "Redis"
    said = str(info.get("valkey_version") or info.get("redis_version") or "")
    if re.fullmatch(r"\d{1,4}(\.\d{1,6}){2}", said):
        yield from redis_fixes(product, tuple(map(int, said.split("."))), own=own)


def _number(info: Info, name: str) -> float:
    try:
        return float(info.get(name, 0))
    except (TypeError, ValueError):
        return 0.0


def _role(info: Info) -> Iterator[Check]:
    """Nothing for a master without replicas."""
    if info.get("role") == "slave":
        master = f"{info.get('master_host')}:{info.get('master_port')}"
        link = "" if info.get("master_link_status") == "up" else ", to which it has lost the link"
        fix = "set redis.url to the master, or let redis.sentinels find it"
        yield failed("redis role", f"is a read-only replica of {master}{link}", fix)
        return
    replicas = [entry for name, entry in info.items() if name.startswith("slave") and isinstance(entry, Mapping)]
    faults = [fault for entry in replicas if (fault := _behind(entry, _number(info, "master_repl_offset")))]
    if faults:
        fix = "a failover now would lose the newest jobs: see the replica's log"
        yield failed("redis role", "; ".join(faults), fix)
    elif replicas:
        yield passed("redis role", f"master of {len(replicas)} replicas, all up to date")


def _behind(replica: Info, offset: float) -> str:
    name, lag = f"replica {replica.get('ip')}:{replica.get('port')}", _number(replica, "lag")
    if replica.get("state") != "online":
        return f"{name} does not follow ({replica.get('state')})"
    missing = max(0.0, offset - _number(replica, "offset"))
    if lag > _BEHIND_S or missing > _BEHIND_BYTES:
        return f"{name} is {size(missing)} behind, last heard of {lag:.0f} s ago"
    return ""


def _persistence(info: Info) -> Check:
    """A Redis whose disk is full refuses all writes; restarted, it would not have what it refused."""
    name, make_room = "redis persistence", "make room on its disk; its log says what fails"
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        detail = "cannot write its snapshot, and takes no changes (stop-writes-on-bgsave-error)"
        return failed(name, detail, make_room)
    if not _number(info, "aof_enabled"):
        return failed(name, "no append-only file", "set `appendonly yes`, or jobs are lost with Redis")
    if info.get("aof_last_write_status", "ok") != "ok":
        return failed(name, "cannot write its append-only file, and takes no changes", make_room)
    if info.get("aof_last_bgrewrite_status", "ok") != "ok":
        detail = "could not rewrite its append-only file, which grows on"
        return failed(name, detail, "give it room on its disk and memory to fork; see its log")
    return passed(name, "append-only file, last write ok")


def _policy(info: Info) -> Check:
    policy, evicted = str(info.get("maxmemory_policy", "unknown")), int(_number(info, "evicted_keys"))
    detail = f"{policy}; {evicted:,} keys were thrown away" if evicted else policy
    if policy != "noeviction":
        return failed("redis memory policy", detail, "set `maxmemory-policy noeviction`: others throw jobs away")
    return passed("redis memory policy", detail)


def _memory(info: Info) -> Iterator[Check]:
    """How near it is to `OOM command not allowed`; nothing where no limit is known."""
    used, limit, of = _number(info, "used_memory"), _number(info, "maxmemory"), "maxmemory"
    fix = "raise maxmemory, or keep jobs for less long (jobs.ttl_s): when it is full, submits fail"
    if not limit:
        limit, of = _number(info, "total_system_memory"), "the machine's memory"
        fix = "set maxmemory below the machine's memory: else the kernel kills Redis in the end"
    if limit:
        detail = f"{used / limit:.0%} of {of} ({size(limit)}) in use"
        yield failed("redis memory", detail, fix) if used >= _NEAR * limit else passed("redis memory", detail)


def _clients(info: Info) -> Iterator[Check]:
    """Only what is wrong: connections that run out, and clients that were disconnected."""
    connected, limit = _number(info, "connected_clients"), _number(info, "maxclients")
    near, refused = connected >= _NEAR * limit, _number(info, "rejected_connections")
    if (limit and near) or refused:
        detail = f"{connected:.0f} of {limit:.0f} connections in use, {refused:.0f} refused"
        yield Check(name="redis connections", ok=not near, detail=detail, fix="raise maxclients")
    if cut := _number(info, "client_output_buffer_limit_disconnections"):
        detail = f"{cut:.0f} clients were cut off since its start because they read too slowly"
        fix = "raise client-output-buffer-limit, or find the client that stands still (CLIENT LIST, omem)"
        yield unknown("redis output buffers", detail, fix)
