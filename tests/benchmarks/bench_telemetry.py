"""What traces and metrics cost: two stacks side by side, one traced into a collector and scraped, in turns.

Run: python -m pytest -m benchmark -s tests/benchmarks/bench_telemetry.py
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest
from prometheus_client import generate_latest

from orchestrator.server.metrics import ServerMetrics
from shared.settings import Settings
from tests.benchmarks.speed.questions import requests
from tests.benchmarks.speed.rigs import RamifyRig, Run, ingested, stack

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]
_LEAVES, _JOBS, _ROUNDS = 8, 40, 4
_SCRAPE_S = 5.0
#: A collector in a process of its own, until its input ends.
_RECEIVE = """
import sys
from tests.fakes.otlp_receiver import OtlpReceiver
with OtlpReceiver() as receiver:
    print(receiver.url, flush=True)
    sys.stdin.read()
    print(len(receiver.spans), flush=True)
"""


def scraped(settings: Settings, stopped: Event) -> None:
    metrics = ServerMetrics(settings)
    while not stopped.wait(_SCRAPE_S):
        generate_latest(metrics.registry)
    metrics.close()


def told(name: str, runs: list[Run]) -> tuple[float, float]:
    cpu = statistics.median(one.cpu_ms()["all"] for one in runs)
    pace = statistics.median(one.jobs_per_s for one in runs)
    print(f"{name}: {cpu:.1f} ms of CPU a job, {pace:.2f} jobs/s")
    return cpu, pace


def test_traces_and_metrics_cost_less_than_a_tenth(tmp_path: Path) -> None:
    options = {"decomposition": {"max_total_leaves": _LEAVES}, "server": {"enabled": False}}
    ingested(tmp_path / "off", **options)
    shutil.copytree(tmp_path / "off", tmp_path / "on", ignore=lambda *_: {"run", "logs", "redis"})
    receive = (sys.executable, "-c", _RECEIVE)
    with subprocess.Popen(receive, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as collector:
        assert collector.stdout
        url, stopped = collector.stdout.readline().strip(), Event()
        traced = {**options, "telemetry": {"otlp_url": url}}
        with stack(tmp_path / "off", **options) as off, stack(tmp_path / "on", **traced) as on:
            scraper = Thread(target=scraped, args=(on.settings, stopped))
            scraper.start()
            rigs: dict[str, RamifyRig] = {"off": off, "on": on}
            runs: dict[str, list[Run]] = {name: [] for name in rigs}
            for rig in rigs.values():
                rig.run(requests(12, _LEAVES, "warm"))
            for turn in range(_ROUNDS):
                for name in ("off", "on") if turn % 2 else ("on", "off"):
                    runs[name].append(rigs[name].run(requests(_JOBS, _LEAVES, turn)))
            stopped.set()
            scraper.join()
        spans, _ = collector.communicate(timeout=30)
    (cpu_off, pace_off), (cpu_on, pace_on) = (told(name, runs[name]) for name in ("off", "on"))
    print(f"CPU {cpu_on / cpu_off:.3f}, jobs/s {pace_on / pace_off:.3f} of those without; {int(spans)} spans")
    assert int(spans) > 2 * _LEAVES * _JOBS * _ROUNDS
    assert cpu_on < 1.1 * cpu_off
