"""The clock that all processes share: Redis' own, so that a wrong or stepping wall clock ends no job early.

Between two readings of Redis, time runs on this machine's monotonic clock, which never steps.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Any

from redis import Redis

#: Seconds after which Redis is asked again.
_FRESH_S = 5.0


class ServerClock:
    """Redis' time. Thread-safe. `now` raises redis.exceptions.RedisError when Redis has never answered."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._lock = Lock()
        self._offset = 0.0
        self._asked: float | None = None

    def now(self) -> float:
        """Unix seconds, off by half a round trip at most."""
        with self._lock:
            if self._asked is None or time.monotonic() - self._asked > _FRESH_S:
                self._ask()
            return time.monotonic() + self._offset

    def _ask(self) -> None:
        before = time.monotonic()
        reply: Any = self._client.time()
        seconds, micros = reply
        after = time.monotonic()
        self._offset = seconds + micros / 1e6 - (before + after) / 2
        self._asked = after
