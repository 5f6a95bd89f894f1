"""Processor time a job and jobs a second, beside a bare Celery graph and the work alone; and what a job costs Redis."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.speed.questions import requests
from tests.benchmarks.speed.redis_use import Look, kept_kb
from tests.benchmarks.speed.rigs import BareRig, DirectRig, RamifyRig, Rig, Run, ingested, stack

_WARM = 12
_IDLE_S = 3.0


@dataclass
class Shape:
    """Jobs of so many leaves, measured in rounds: every rig in each."""

    leaves: int
    jobs: int
    runs: dict[str, list[Run]] = field(default_factory=dict)
    redis: list[dict[str, Any]] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Medians over the rounds, and ratios of these."""
        found: dict[str, Any] = {"leaves": self.leaves, "jobs": self.jobs}
        for name, runs in self.runs.items():
            cpu = [run.cpu_ms() for run in runs]
            found[name] = {
                "cpu_ms": {part: _median([one.get(part, 0.0) for one in cpu]) for part in cpu[0]},
                "jobs_per_s": _median([run.jobs_per_s for run in runs]),
            }
        ours, bare, work = (found[name]["cpu_ms"]["all"] for name in ("ramify", "bare", "in process"))
        found["ratios"] = {
            "cpu / (bare + in process)": round(ours / (bare + work), 2),
            "jobs/s / bare jobs/s": round(found["ramify"]["jobs_per_s"] / found["bare"]["jobs_per_s"], 2),
        }
        found["redis"] = {name: _median_of(self.redis, name) for name in self.redis[0]}
        return found


def _median(numbers: Sequence[float]) -> float:
    return round(statistics.median(numbers), 1)


def _median_of(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    if isinstance(rows[0][name], dict):
        return {part: _median([row[name].get(part, 0.0) for row in rows]) for part in rows[0][name]}
    return _median([row[name] for row in rows])


def measured(leaves: Sequence[int], jobs: int, rounds: int, **options: Any) -> dict[str, Any]:
    """`jobs`: of eight leaves; others get as many leaves in all, and at least a quarter of the jobs."""
    options = {"decomposition": {"max_total_leaves": max(leaves)}, **options}
    with tempfile.TemporaryDirectory(prefix="bench") as name:
        folder = Path(name) / "stack"
        ingested(folder, **options)
        direct = DirectRig(folder, Path(name) / "direct")
        try:
            with stack(folder, **options) as rig:
                shapes = [
                    _shape(rig, direct, count, max(jobs // 4, jobs * 8 // max(count, 8)), rounds) for count in leaves
                ]
                return {
                    "chunks": direct.chunks,
                    "shapes": [shape.figures() for shape in shapes],
                    "idle calls/s": _idle(rig),
                    "kept KB": kept_kb(rig.redis, sum(shape.jobs * rounds + _WARM for shape in shapes)),
                }
        finally:
            direct.close()


def _shape(rig: RamifyRig, direct: DirectRig, leaves: int, jobs: int, rounds: int) -> Shape:
    shape, bare = Shape(leaves, jobs), BareRig(rig.settings, rig.processes, leaves)
    try:
        rigs: dict[str, Rig] = {"bare": bare, "in process": direct, "ramify": rig}
        for one in rigs.values():
            one.run(requests(_WARM, leaves, ("warm", leaves)))
        for turn in range(rounds):
            asked = requests(jobs, leaves, (turn, leaves))
            for name, one in rigs.items():
                before = Look.now(rig.redis)
                shape.runs.setdefault(name, []).append(one.run(asked))
                if one is rig:
                    shape.redis.append(Look.now(rig.redis).since(before, jobs))
    finally:
        bare.close()
    return shape


def _idle(rig: RamifyRig) -> float:
    """Calls a second while nothing is asked."""
    before = Look.now(rig.redis)
    time.sleep(_IDLE_S)
    return round((Look.now(rig.redis).calls - before.calls).total() / _IDLE_S, 1)
