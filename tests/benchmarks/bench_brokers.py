"""The same jobs with Redis and with RabbitMQ as the broker, two stacks in turns: jobs a second, CPU a job.

Run: python -m pytest -m benchmark -s tests/benchmarks/bench_brokers.py
"""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

import psutil
import pytest

from tests.benchmarks.speed.questions import requests
from tests.benchmarks.speed.rigs import RamifyRig, Run, ingested, stack
from tests.support.rabbitmq_server import RabbitServer

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]
_LEAVES, _JOBS, _ROUNDS = 8, 40, 4


def told(name: str, runs: list[Run]) -> tuple[float, float]:
    cpu = {part: statistics.median(one.cpu_ms().get(part, 0.0) for one in runs) for part in runs[0].cpu_ms()}
    pace = statistics.median(one.jobs_per_s for one in runs)
    print(f"{name}: {pace:.2f} jobs/s; CPU of a job in ms {cpu}")
    return cpu["all"], pace


def test_what_rabbitmq_costs_beside_redis(tmp_path: Path) -> None:
    options = {"decomposition": {"max_total_leaves": _LEAVES}, "server": {"enabled": False}}
    ingested(tmp_path / "redis", **options)
    shutil.copytree(tmp_path / "redis", tmp_path / "rabbitmq", ignore=lambda *_: {"run", "logs", "redis"})
    with RabbitServer(tmp_path / "server") as server:
        over = {**options, "broker": {"url": server.url()}}
        with stack(tmp_path / "redis", **options) as one, stack(tmp_path / "rabbitmq", **over) as other:
            assert server.process
            for process in psutil.Process(server.process.pid).children(recursive=True):
                other.processes[process.pid] = "rabbitmq"
            rigs: dict[str, RamifyRig] = {"redis": one, "rabbitmq": other}
            runs: dict[str, list[Run]] = {name: [] for name in rigs}
            for rig in rigs.values():
                rig.run(requests(12, _LEAVES, "warm"))
            for turn in range(_ROUNDS):
                for name in ("redis", "rabbitmq") if turn % 2 else ("rabbitmq", "redis"):
                    runs[name].append(rigs[name].run(requests(_JOBS, _LEAVES, turn)))
    (cpu, pace), (cpu_other, pace_other) = (told(name, runs[name]) for name in rigs)
    print(f"RabbitMQ in place of Redis: CPU {cpu_other / cpu:.2f}, jobs/s {pace_other / pace:.2f}")
