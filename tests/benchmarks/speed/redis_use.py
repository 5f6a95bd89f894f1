"""What Redis did between two looks (calls, scripts, round trips, bytes), and what jobs leave in it by kind of key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import redis

_SCRIPTS = ("eval", "evalsha", "fcall")
_HASH_TAG = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class Look:
    """Counters of Redis since it started. Calls count the commands inside of scripts."""

    calls: Counter[str]
    reads: int
    net_in: int
    net_out: int
    used: int
    channels: int
    clients: int

    @classmethod
    def now(cls, client: redis.Redis) -> Look:
        info: dict[str, Any] = client.info("everything")  # type: ignore[assignment]
        calls = Counter({name[8:]: value["calls"] for name, value in info.items() if name.startswith("cmdstat_")})
        return cls(
            calls=calls,
            reads=info.get("total_reads_processed", 0),
            net_in=info["total_net_input_bytes"],
            net_out=info["total_net_output_bytes"],
            used=info["used_memory"],
            channels=info["pubsub_channels"],
            clients=info["connected_clients"],
        )

    def since(self, before: Look, jobs: int) -> dict[str, float | dict[str, float]]:
        """Per job. Round trips: how often Redis read from a connection."""
        calls = self.calls - before.calls
        found = {
            "calls": calls.total(),
            "scripts": sum(calls[name] for name in _SCRIPTS),
            "publish": calls["publish"],
            "transactions": calls["multi"],
            "round_trips": self.reads - before.reads,
            "kb_in": (self.net_in - before.net_in) / 1024,
            "kb_out": (self.net_out - before.net_out) / 1024,
            "kb_kept": (self.used - before.used) / 1024,
        }
        by_name = {name: round(number / jobs, 1) for name, number in calls.most_common(25)}
        return {name: round(number / jobs, 1) for name, number in found.items()} | {"by_command": by_name}


def kept_kb(client: redis.Redis, jobs: int) -> dict[str, float]:
    """KB a job of the keys in Redis by kind, the largest first."""
    sizes: Counter[str] = Counter()
    for page in _pages(client):
        with client.pipeline(transaction=False) as pipe:
            for key in page:
                pipe.memory_usage(key, samples=0)
            for key, size in zip(page, pipe.execute(), strict=True):
                sizes[_kind(key.decode("utf-8", "replace"))] += size or 0
    return {kind: round(size / jobs / 1024, 2) for kind, size in sizes.most_common() if size / jobs > 50}


def _kind(key: str) -> str:
    found = _HASH_TAG.sub("ID", key)
    return "celery-task-meta-*" if found.startswith("celery-task-meta") else found


def _pages(client: redis.Redis) -> Iterator[list[bytes]]:
    cursor = 0
    while True:
        cursor, keys = client.scan(cursor, count=500)  # type: ignore[misc]
        yield keys
        if not cursor:
            return
