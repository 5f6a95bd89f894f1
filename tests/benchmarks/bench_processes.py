"""Jobs a second with 1, 2 and 4 processes in each pool that calls a model, against perfect scaling; and what limits.

The model takes 0.5 s (RAMIFY_TEST_MODEL_S) and each process has one thread, so that processes limit as long as there
are cores. Also what a job takes of Redis, which all processes share.

Run: python -m pytest -m benchmark -s tests/benchmarks/bench_processes.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from orchestrator.client import Ramify
from shared.jobs import connect
from shared.models import JobRequest
from shared.settings import load_settings
from tests.benchmarks.speed import questions
from tests.benchmarks.speed.redis_use import Look
from tests.benchmarks.speed.rigs import RamifyRig
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Slow
from tests.faults.redis_stage import pools
from tests.support.redis_server import RedisServer

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]
MODEL_S = float(os.environ.get("RAMIFY_TEST_MODEL_S", "0.5"))
LEAVES, WARM = 4, 6
#: Each process has one thread: it plans, or writes, one answer at a time.
COPIES = (1, 2, 4)
CALLING = ("plan", "merge")


@contextmanager
def rig(folder: Path, copies: int) -> Iterator[RamifyRig]:
    """Pools of so many processes, and a model that takes its time."""
    with RedisServer(folder / "redis", lasting=True) as server, FakeOpenAI() as model:
        model.handle("chat", lambda _: Slow(MODEL_S))
        settings = load_settings(
            data_dir=folder, redis={"url": server.url}, cache={"enabled": False},
            llm_base_url=model.url, llm_model="fake", enable_summary=True, providers={"breaker": {"failures": 0}},
            pools={**dict.fromkeys(CALLING, 1), "search": 4, "rerank": 4},
        )  # fmt: skip
        with (
            pools(settings, copies=dict.fromkeys((*CALLING, "rerank"), copies)),
            Ramify(settings) as client,
            connect(settings) as look,
        ):
            for _ in client.ingest((questions.NOTES,)):
                pass
            yield RamifyRig(settings, client, look)


def figures(rig: RamifyRig, copies: int) -> dict[str, Any]:
    """Of as many jobs as perfect scaling does in 15 s."""
    rig.run(_asked(WARM, ("warm", copies)), degraded=True)
    perfect = copies / MODEL_S
    jobs = max(20, round(15 * perfect))
    before, redis_before = Look.now(rig.redis), _redis_cpu(rig.redis)
    done = rig.run(_asked(jobs, copies), degraded=True)  # a reply of the fake model may not be usable
    redis_ms = 1000 * (_redis_cpu(rig.redis) - redis_before) / jobs
    busiest, seconds = done.cpu.most_common(1)[0]
    return {
        "processes": copies,
        "jobs/s": round(done.jobs_per_s, 2),
        "of perfect": round(done.jobs_per_s / perfect, 2),
        "busiest": f"{busiest} {seconds / done.wall_s:.0%} of a core",
        "cores used": round(done.cpu.total() / done.wall_s, 2),
        "CPU ms a job": done.cpu_ms(),
        "Redis calls a job": Look.now(rig.redis).since(before, jobs)["calls"],
        "Redis ms a job": round(redis_ms, 2),
        "jobs/s of one Redis": round(1000 / redis_ms),
        "load": psutil.getloadavg()[0],
    }


def _asked(count: int, seed: object) -> list[JobRequest]:
    return [request.model_copy(update={"deadline_s": 3600.0}) for request in questions.requests(count, LEAVES, seed)]


def _redis_cpu(client: redis.Redis) -> float:
    """Seconds of its main thread, which runs all commands."""
    cpu: dict[str, Any] = client.info("cpu")  # type: ignore[assignment]
    return float(cpu["used_cpu_user_main_thread"]) + float(cpu["used_cpu_sys_main_thread"])


def test_processes_of_a_pool(tmp_path: Path) -> None:
    rows = []
    for copies in COPIES:
        (folder := tmp_path / f"of-{copies}").mkdir(mode=0o700)
        with rig(folder, copies) as running:
            rows.append(figures(running, copies))
            print(f"\n{rows[-1]}")
    assert rows[1]["jobs/s"] > rows[0]["jobs/s"]
