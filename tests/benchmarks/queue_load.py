"""A Redis of its own full of waiting jobs, and what a look at them costs. Used by a benchmark and by a test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import redis

from orchestrator.client import Ramify
from shared.models import JobRequest, Lane

_SAMPLES, _CHEAP = 60, 2000


@dataclass
class Level:
    """Measured with so many jobs waiting: milliseconds (p50, p99), jobs a second.

    `submit_us`: processor time of client and Redis for a submission, in microseconds; other load does not change it.
    """

    waiting: int
    submit_per_s: float = 0.0
    submit_us: float = 0.0
    ms: dict[str, tuple[float, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        looks = ", ".join(f"{name} p50 {p50:.2f} p99 {p99:.2f} ms" for name, (p50, p99) in self.ms.items())
        rate = f"{self.submit_per_s:,.0f} submits/s ({self.submit_us:.0f} us of CPU each)"
        return f"{self.waiting:,} waiting: {rate}, {looks}"


def questions(count: int) -> Iterator[JobRequest]:
    """Of usual length."""
    for number in range(count):
        text = f"Which incidents of week {number} were caused by retries, and what did we change afterwards?"
        yield JobRequest(question=text, lane=Lane.BATCH)


def percentiles(look: Callable[[], object], samples: int = _SAMPLES) -> tuple[float, float]:
    """Milliseconds."""
    spans = []
    for _ in range(samples):
        began = time.perf_counter()
        look()
        spans.append((time.perf_counter() - began) * 1000)
    spans.sort()
    return spans[len(spans) // 2], spans[min(len(spans) - 1, int(0.99 * len(spans)))]


def cpu_of(client: redis.Redis) -> float:
    """Seconds of this process and of Redis."""
    used: dict[str, float] = client.info("cpu")  # type: ignore[assignment]
    return time.process_time() + used["used_cpu_user"] + used["used_cpu_sys"]


def measured(ramify: Ramify, client: redis.Redis, batch_id: str, waiting: int, probe: int = 1000) -> Level:
    """Fill up to `waiting` jobs, then measure with `probe` more of them."""
    there = ramify.batch_status(batch_id).enqueued
    list(ramify.add_to_batch(batch_id, questions(max(0, waiting - there))))
    level = Level(waiting=waiting)
    began, spent = time.perf_counter(), cpu_of(client)
    ids = [line.job_id or "" for line in ramify.add_to_batch(batch_id, questions(probe))]
    level.submit_per_s = probe / (time.perf_counter() - began)
    level.submit_us = 1e6 * (cpu_of(client) - spent) / probe
    middle = ids[probe // 2]
    level.ms["status"] = percentiles(lambda: ramify.status(middle), _CHEAP)
    level.ms["why"] = percentiles(lambda: ramify.why(middle))
    level.ms["why of the batch"] = percentiles(lambda: ramify.why(batch_id))
    some = iter(ids)
    level.ms["cancel"] = percentiles(lambda: ramify.cancel(next(some)))
    return level
