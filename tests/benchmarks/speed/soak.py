"""Thousands of jobs through one stack and a Redis of 1 GB: what each process, Redis and its connections then hold."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks.speed import processes
from tests.benchmarks.speed.questions import requests
from tests.benchmarks.speed.redis_use import Look
from tests.benchmarks.speed.rigs import RamifyRig, ingested, stack
from tests.support.redis_server import RedisServer

LEAVES = 3
_REDIS = ("--maxmemory", "1gb")


def measured(jobs: int, step: int) -> dict[str, Any]:
    """`jobs` in all; a row every `step` of them, the first of which all others are compared with."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench") as name, ExitStack() as opened:
        server = opened.enter_context(RedisServer(Path(name) / "redis", *_REDIS, lasting=True))
        folder, redis = Path(name) / "stack", {"url": server.url}
        ingested(folder, redis=redis)
        with stack(folder, redis=redis) as rig:
            for done in range(step, jobs + 1, step):
                run = rig.run(requests(step, LEAVES, ("soak", done)), degraded=True)
                rows.append({"jobs": done, "jobs/s": round(run.jobs_per_s, 1), **_held(rig)})
                print(rows[-1], flush=True)
    first, last = rows[0], rows[-1]
    grown = {name: round(size - first["mb"].get(name, 0.0), 1) for name, size in last["mb"].items()}
    kept = (last["redis kB"] - first["redis kB"]) / max(1, last["jobs"] - first["jobs"])
    return {"leaves": LEAVES, "rows": rows, "grown MB": grown, "kB a job": round(kept, 1)}


def _held(rig: RamifyRig) -> dict[str, Any]:
    look = Look.now(rig.redis)
    return {
        "mb": processes.own_mb(processes.stack_processes(rig.settings.data_dir)),
        "redis kB": look.used // 1024,
        "keys": int(rig.redis.dbsize()),
        "channels": look.channels,
        "connections": look.clients,
    }
