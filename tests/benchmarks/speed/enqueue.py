"""Lines a second into the admission queues beside a loop of `apply_async`, and what a waiting job costs Redis."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from celery import Celery

from orchestrator.client import Ramify
from shared.settings import load_settings
from tests.benchmarks.queue_load import cpu_of, questions
from tests.benchmarks.speed.redis_use import Look
from tests.support.redis_server import RedisServer


def measured(lines: int, rounds: int) -> dict[str, Any]:
    """A Redis of its own without workers, so that everything waits."""
    with tempfile.TemporaryDirectory(prefix="bench") as name:
        server = RedisServer(Path(name) / "redis", "--hash-max-ziplist-value", "1024", lasting=True).start()
        client = redis.Redis.from_url(server.url)
        lanes = {"max_waiting_batch": 2 * lines * rounds, "tenant_share": 1.0}
        settings = load_settings(redis={"url": server.url}, data_dir=Path(name) / "data", lanes=lanes)
        app = Celery("loop", broker=server.url)
        app.conf.task_ignore_result = True
        taken: dict[str, list[tuple[float, float]]] = {"ramify": [], "loop": []}
        try:
            with Ramify(settings) as ramify:
                _loop(app, 50)
                ramify.submit_many(questions(50))
                for _ in range(rounds):
                    before = Look.now(client)
                    taken["ramify"].append(_each(client, lines, lambda: ramify.submit_many(questions(lines))))
                    kept = Look.now(client).since(before, lines)
                    taken["loop"].append(_each(client, lines, lambda: _loop(app, lines)))
        finally:
            app.close()
            client.close()
            server.process.kill()  # type: ignore[union-attr] # it was started above
            server.process.wait()  # type: ignore[union-attr]
    rate = {name: round(statistics.median(one for one, _ in given)) for name, given in taken.items()}
    cpu = {name: round(statistics.median(one for _, one in given)) for name, given in taken.items()}
    ratios = {"lines/s": round(rate["ramify"] / rate["loop"], 1), "cpu": round(cpu["loop"] / cpu["ramify"], 1)}
    return {"lines": lines, "lines/s": rate, "cpu us": cpu, "ratios": ratios, "redis": kept}


def _each(client: redis.Redis, lines: int, run: Callable[[], object]) -> tuple[float, float]:
    """Lines a second; microseconds of processor time a line, of this process and of Redis."""
    begun, spent = time.perf_counter(), cpu_of(client)
    run()
    return lines / (time.perf_counter() - begun), 1e6 * (cpu_of(client) - spent) / lines


def _loop(app: Celery, lines: int) -> None:
    for request in questions(lines):
        app.send_task("loop.ask", args=(request.question,), queue="loop")
