"""Keys of Redis as another program, or an attacker, may leave them: of a wrong type, or with garbage in them."""

from __future__ import annotations

import copy
import random
import zlib
from typing import Any

import redis

TYPES = ("string", "list", "set", "zset", "hash", "stream")
#: Contents that have broken something: bytes, numbers beyond every range, deep JSON, bombs.
GARBAGE: tuple[bytes, ...] = (
    b"", b"x", b"\xff\xfe\x00", b"-1", b"1e999", b"nan", b"9" * 400, b"not json", b"{}", b"[[]]", b"null",
    b'{"a": ' * 5000, b"../../etc/passwd", b"\x1b[31mred", "默认".encode(), b"a b c", b"interactive", b"batch default",
    b"default", zlib.compress(b"0" * 5_000_000),
    zlib.compress(b'{"hits": [' * 50_000), zlib.compress(b'{"hits": [{}], "chunks": 7}'),
)  # fmt: skip
#: Values that may stand anywhere in a message.
ODD: tuple[Any, ...] = (
    None, -1, 10**30, 1e308, True, "", [], {}, "x" * 50_000, [[]], {"x": "x"}, "\ud800", "celery.map", [7],
    {"task": "plan.job"}, [{"task": "plan.job"}],
)  # fmt: skip
_SCORES = (0.0, -1.0, 1e308, float("inf"), float("-inf"), 1_800_000_000.0)


def put(rng: random.Random, client: redis.Redis, key: str, right: str, *, wrong: bool) -> str:
    """Put garbage into `key`, in place of what is there if `wrong`, then of another type than the `right` one."""
    kind = rng.choice([one for one in TYPES if one != right]) if wrong else right
    if wrong:
        client.delete(key)
    some = rng.sample(GARBAGE, 3)
    untyped: Any = client
    if kind == "string":
        client.set(key, some[0])
    elif kind == "zset":
        client.zadd(key, {one: rng.choice(_SCORES) for one in some})
    elif kind == "hash":
        client.hset(key, mapping=dict(zip(_fields(rng, client, key), some, strict=True)))
    elif kind == "stream":
        untyped.xadd(key, {one or b"-": one for one in some})
    else:
        (client.lpush if kind == "list" else client.sadd)(key, *some)
    return kind


def _fields(rng: random.Random, client: redis.Redis, key: str) -> list[bytes]:
    """Fields that are there, as far as there are any, and strange ones."""
    there: list[bytes] = client.hkeys(key) if client.type(key) == b"hash" else []
    return rng.sample([*there, *GARBAGE], 3)


def mutated(rng: random.Random, value: Any, times: int) -> Any:
    """A copy of what JSON can hold in which so many parts, at any depth, are taken away, added or odd."""
    found = copy.deepcopy(value)
    for _ in range(times):
        at, parent, name = found, None, None
        while isinstance(at, dict | list) and at and rng.random() < 0.8:
            parent, name = at, rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            at = parent[name]
        if isinstance(parent, dict) and rng.random() < 0.2:
            del parent[name]
        elif parent is not None:
            parent[name] = copy.deepcopy(rng.choice(ODD))
    return found
