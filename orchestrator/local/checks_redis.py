"""Doctor's look at Redis: what it says of itself (INFO), what waits in the queues, what the caches saved.

INFO is read as Redis 6.2 and later write it; a field that a release does not have counts as fine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import redis as redis_client

from orchestrator.local.checks import Check, size
from shared.cache import Cache
from shared.connections.redis_errors import redis_fault
from shared.contract import PRIORITY_STEPS, Queue
from shared.jobs import connect
from shared.settings import Settings

Info = Mapping[str, Any]
#: Of maxmemory, or of the connections: from here on there is little time left to do something.
_NEAR = 0.9
#: What a replica may be behind before a failover would lose noticeably much.
_BEHIND_S, _BEHIND_BYTES = 10, 10_000_000
#: kombu's separator between a queue's name and its priority in Redis.
_PRIORITY_MARK = "\x06\x16"
_NOT_RUNNING, _START = "not running", "ramify up -d"
_TIMEOUT_S = 3.0


def redis(settings: Settings | None) -> Sequence[Check]:
    """What Redis says of itself, what waits in the queues, and what the caches saved."""
    if settings is None:
        return tuple(Check(name=name, ok=None, detail=_NOT_RUNNING, fix=_START) for name in ("redis", "queues"))
    try:
        with _looking(settings) as client:
            found = read_info(client.info())
            return (*found, *_held(client, settings)) if found[0].ok else found
    except redis_client.RedisError as error:
        said = redis_fault(error) or f"does not answer: {error}"
        return (Check(name="redis", ok=False, detail=said, fix="start it, or correct redis.url"),)


def _held(client: redis_client.Redis, settings: Settings) -> Sequence[Check]:
    """A Redis that takes no changes may refuse these too; what it said of itself is worth no less."""
    try:
        return (_queues(client, settings), _caches(client, settings))
    except redis_client.RedisError as error:
        return (
            Check(
                name="queues", ok=None, detail=f"cannot be asked: Redis {redis_fault(error) or type(error).__name__}"
            ),
        )


def _looking(settings: Settings) -> redis_client.Redis:
    """A client that does not try again by itself: who asks here wants to know how things are now."""
    return connect(settings, retries=0, timeout_s=min(settings.redis.timeout_s, 3.0))


def _queues(client: redis_client.Redis, settings: Settings) -> Check:
    if settings.redis.broker_url.get_secret_value():
        return Check(name="queues", ok=None, detail="in the broker that redis.broker_url names: ask its own tools")
    return _depth(client)


def queue_keys(queue: str) -> list[str]:
    """The Redis lists that hold a queue: one for each priority step."""
    return [queue if step == 0 else f"{queue}{_PRIORITY_MARK}{step}" for step in PRIORITY_STEPS]


def _depth(client: redis_client.Redis) -> Check:
    keys = {queue: queue_keys(queue.value) for queue in Queue}
    with client.pipeline(transaction=False) as pipe:
        for names in keys.values():
            for key in names:
                pipe.llen(key)
        lengths = iter(pipe.execute())
    counts = {queue: [int(next(lengths)) for _ in names] for queue, names in keys.items()}
    half = len(PRIORITY_STEPS) // 2  # the steps of the interactive lane stand first
    waits = {queue: (sum(of[:half]), sum(of[half:])) for queue, of in counts.items()}
    detail = ", ".join(f"{queue} {'+'.join(map(str, counts))}" for queue, counts in waits.items() if any(counts))
    return Check(name="queues", ok=True, detail=f"waiting, interactive+batch: {detail}" if detail else "nothing waits")


def _caches(client: redis_client.Redis, settings: Settings) -> Check:
    """How often something was reused instead of computed, by kind."""
    if not settings.cache.enabled:
        return Check(name="cache", ok=None, detail="switched off (cache.enabled)")
    stats = Cache(client, settings).stats()
    detail = ", ".join(f"{kind} {found.hit_rate:.0%} of {found.asked}" for kind, found in stats.items())
    return Check(name="cache", ok=True, detail=f"reused: {detail}" if detail else "nothing asked yet")


def read_info(info: Info) -> Sequence[Check]:
    """What Redis says about itself, in reading order; pure. While it loads its file there is nothing else to say."""
    if _number(info, "loading"):
        return (_loading(info),)
    found = (_answers(info), *_role(info), _persistence(info), _policy(info), _memory(info), *_clients(info))
    return tuple(check for check in found if check)


def _number(info: Info, name: str) -> float:
    try:
        return float(info.get(name, 0))
    except (TypeError, ValueError):
        return 0.0


def _answers(info: Info) -> Check:
    used = size(_number(info, "used_memory"))
    return Check(name="redis", ok=True, detail=f"answers, version {info.get('redis_version')}, {used} in use")


def _loading(info: Info) -> Check:
    done = f"{_number(info, 'loading_loaded_perc'):.0f} %"
    detail = f"is loading its file: {done} done, about {_number(info, 'loading_eta_seconds'):.0f} s to go"
    return Check(name="redis", ok=False, detail=detail, fix="wait; workers and clients come back by themselves")


def _role(info: Info) -> Sequence[Check]:
    """Nothing for a master that stands alone."""
    if info.get("role") == "slave":
        master = f"{info.get('master_host')}:{info.get('master_port')}"
        link = "" if info.get("master_link_status") == "up" else ", to which it has lost the link"
        fix = "set redis.url to the master, or let redis.sentinels find it"
        return (Check(name="redis role", ok=False, detail=f"is a read-only replica of {master}{link}", fix=fix),)
    replicas = [entry for name, entry in info.items() if name.startswith("slave") and isinstance(entry, Mapping)]
    if not replicas:
        return ()
    faults = [fault for entry in replicas if (fault := _behind(entry, _number(info, "master_repl_offset")))]
    detail = "; ".join(faults) or f"master of {len(replicas)} replicas, all up to date"
    fix = "a failover now would lose the newest jobs: see the replica's log" if faults else ""
    return (Check(name="redis role", ok=not faults, detail=detail, fix=fix),)


def _behind(replica: Info, offset: float) -> str:
    name, lag = f"replica {replica.get('ip')}:{replica.get('port')}", _number(replica, "lag")
    if replica.get("state") != "online":
        return f"{name} does not follow ({replica.get('state')})"
    missing = max(0.0, offset - _number(replica, "offset"))
    if lag > _BEHIND_S or missing > _BEHIND_BYTES:
        return f"{name} is {size(missing)} behind, last heard of {lag:.0f} s ago"
    return ""


def _persistence(info: Info) -> Check:
    """With a disk that is full Redis first refuses all writes, then, once it is restarted, has lost what it refused."""
    name = "redis persistence"
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        detail = "cannot write its snapshot, and takes no changes (stop-writes-on-bgsave-error)"
        return Check(name=name, ok=False, detail=detail, fix="make room on its disk; its log says what fails")
    if not _number(info, "aof_enabled"):
        fix = "set `appendonly yes`, or jobs are lost with Redis"
        return Check(name=name, ok=False, detail="no append-only file", fix=fix)
    if info.get("aof_last_write_status", "ok") != "ok":
        detail = "cannot write its append-only file, and takes no changes"
        return Check(name=name, ok=False, detail=detail, fix="make room on its disk; its log says what fails")
    if info.get("aof_last_bgrewrite_status", "ok") != "ok":
        detail = "could not rewrite its append-only file, which grows on"
        return Check(name=name, ok=False, detail=detail, fix="give it room on its disk and memory to fork; see its log")
    return Check(name=name, ok=True, detail="append-only file, last write ok")


def _policy(info: Info) -> Check:
    policy, lost = info.get("maxmemory_policy", "unknown"), int(_number(info, "evicted_keys"))
    detail = f"{policy}; {lost:,} keys were thrown away" if lost else str(policy)
    fix = "" if policy == "noeviction" else "set `maxmemory-policy noeviction`: others throw jobs away"
    return Check(name="redis memory policy", ok=policy == "noeviction", detail=detail, fix=fix)


def _memory(info: Info) -> Check | None:
    """How near it is to `OOM command not allowed`; nothing where no limit is known."""
    used, most = _number(info, "used_memory"), _number(info, "maxmemory")
    of, fix = (
        "maxmemory",
        "raise maxmemory, or keep jobs for less long (jobs.ttl_s): when it is full, submits fail",
    )
    if not most:
        most, of = _number(info, "total_system_memory"), "the machine's memory"
        fix = "set maxmemory below the machine's memory: else the kernel kills Redis in the end"
    if not most:
        return None
    detail = f"{used / most:.0%} of {of} ({size(most)}) in use"
    near = used >= _NEAR * most
    return Check(name="redis memory", ok=not near, detail=detail, fix=fix if near else "")


def _clients(info: Info) -> Sequence[Check]:
    """Only what is wrong: connections that run out, and clients that were thrown out."""
    found = []
    connected, most = _number(info, "connected_clients"), _number(info, "maxclients")
    if (most and connected >= _NEAR * most) or _number(info, "rejected_connections"):
        detail = (
            f"{connected:.0f} of {most:.0f} connections in use, {_number(info, 'rejected_connections'):.0f} refused"
        )
        found.append(
            Check(name="redis connections", ok=connected < _NEAR * most, detail=detail, fix="raise maxclients")
        )
    cut = _number(info, "client_output_buffer_limit_disconnections")
    if cut:
        detail = f"{cut:.0f} clients were cut off since its start because they read too slowly"
        fix = "raise client-output-buffer-limit, or find the client that stands still (CLIENT LIST, omem)"
        found.append(Check(name="redis output buffers", ok=None, detail=detail, fix=fix))
    return found
