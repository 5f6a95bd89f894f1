"""The keys of a Redis as JSON and back: what a release leaves there, kept as test data, and put before the next one."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import redis

#: Heartbeats, locks and caches: of processes that are gone.
_NOT_KEPT = (
    "ramify:worker",
    "ramify:cache:",
    "_kombu",
    "celery-task-meta",
    "ramify:{reaper}",
    "ramify:{standing}:lock",
)
_TTL_S = 86_400
Kept = dict[str, dict[str, Any]]


def kept_keys(client: redis.Redis) -> Kept:
    """All keys that tell something: key -> type and value. Blobs are unpacked, so that a person can read them."""
    found: Kept = {}
    for raw in sorted(client.scan_iter(count=1000)):
        key = raw.decode()
        if not key.startswith(_NOT_KEPT):
            kind = client.type(raw).decode()
            found[key] = {"type": kind, "value": _value(client, key, kind)}
    return found


def _value(client: redis.Redis, key: str, kind: str) -> Any:
    match kind:
        case "string":
            return _told(client.get(key))
        case "hash":
            return {_told(name): _told(value) for name, value in sorted(client.hgetall(key).items())}
        case "list":
            return [_told(value) for value in client.lrange(key, 0, -1)]
        case "set":
            return sorted(_told(value) for value in client.smembers(key))
        case "zset":
            return [[_told(member), score] for member, score in client.zrange(key, 0, -1, withscores=True)]
        case "stream":
            rows = client.xrange(key)
            return [[_told(number), {_told(n): _told(v) for n, v in fields.items()}] for number, fields in rows]
    raise ValueError(f"{key} is a {kind}")


def _told(value: Any) -> Any:
    try:
        return {"zlib": zlib.decompress(value).decode()}
    except (zlib.error, UnicodeDecodeError):
        pass
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _bytes(told: Any) -> Any:
    if isinstance(told, dict):
        return zlib.compress(told["zlib"].encode()) if "zlib" in told else base64.b64decode(told["base64"])
    return told


def put_back(client: redis.Redis, kept: Kept, now: float, deadline_s: float = 300.0) -> None:
    """Write them, as if it had been a moment ago: jobs have `deadline_s` seconds left from `now` (Unix seconds)."""
    for key, told in kept.items():
        value = told["value"]
        _put(client, key, told["type"], value)
        if key.startswith("ramify:"):
            client.expire(key, _TTL_S)
        if key.endswith(":job"):
            times = {"deadline_at", "waits_until"} & value.keys()
            client.hset(key, mapping={"updated_at": now, **dict.fromkeys(times, now + deadline_s)})
    if active := [member for member, _ in kept.get("ramify:active", {"value": []})["value"]]:
        client.zadd("ramify:active", dict.fromkeys(active, now))


def _put(client: redis.Redis, key: str, kind: str, value: Any) -> None:
    match kind:
        case "string":
            client.set(key, _bytes(value))
        case "hash":
            client.hset(key, mapping={name: _bytes(one) for name, one in value.items()})
        case "list":
            client.rpush(key, *map(_bytes, value))
        case "set":
            client.sadd(key, *map(_bytes, value))
        case "zset":
            client.zadd(key, {_bytes(member): score for member, score in value})
        case "stream":
            for number, fields in value:
                client.xadd(key, {name: _bytes(one) for name, one in fields.items()}, id=number)


def read_kept(path: Path) -> Kept:
    """A file of `kept_keys`."""
    found: Kept = json.loads(path.read_text("utf-8"))
    return found
