"""One reaper leads, by a lock with a fencing token: what a former leader still sends is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis

from shared.connections.heartbeat import worker_id
from shared.jobs.keys import PREFIX
from shared.jobs.scripts import Scripts

_TAG = f"{PREFIX}:{{reaper}}"
LOCK = f"{_TAG}:lock"
TOKEN = f"{_TAG}:token"
#: When a reaper finished its last run (Unix seconds).
LOOKED = f"{_TAG}:looked"
#: A run takes milliseconds; a leader that died blocks the next one for so long.
_LOCK_MS = 10_000
#: Seconds that the counter of tokens is kept after the last run.
_TOKEN_S = 86_400


@contextmanager
def leading(client: Redis) -> Iterator[int]:
    """The fencing token of this leadership; 0 while another one leads. Raises: redis.exceptions.RedisError."""
    run = Scripts(client)
    token = int(run("lead", [LOCK, TOKEN], [worker_id(), _LOCK_MS, _TOKEN_S]))
    try:
        yield token
    finally:
        if token:
            run("unlead", [LOCK], [token])
