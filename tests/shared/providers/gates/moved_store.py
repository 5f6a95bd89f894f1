"""A gate store whose time is moved instead of waited for."""

from __future__ import annotations

import redis

from shared.providers.gates.gate_store import GateStore

NAME = "llm:127.0.0.1:8000"
KEY = "ramify:gate:{llm:127.0.0.1:8000}"
_TIMES = ("tat", "line", "batch_at", "pause_until", "failed_at", "opened_at", "open_until", "probe_until")


class MovedStore(GateStore):
    """A store whose time is moved by moving the times in Redis."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client)
        self.client = client

    def advance(self, ms: float) -> None:
        if 0 <= self.client.pttl(KEY) < ms:
            self.client.delete(KEY)
        for name in _TIMES:
            if (value := self.client.hget(KEY, name)) is not None:
                self.client.hset(KEY, name, f"{float(value) - ms:.3f}")
        if self.client.pttl(KEY) > 0:
            self.client.pexpire(KEY, int(self.client.pttl(KEY) - ms))
