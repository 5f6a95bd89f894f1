"""What a job costs while more wait, over more chunks, and with latency between every process and Redis."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.jobs.keys import BatchKeys
from tests.benchmarks.speed import processes
from tests.benchmarks.speed.ingest import stored_chunks
from tests.benchmarks.speed.questions import NOTES, requests
from tests.benchmarks.speed.rigs import RamifyRig, Run, ingested, stack
from tests.faults.redis_proxy import Proxy
from tests.support.redis_server import RedisServer

LEAVES = 8
_WARM, _ALONE = 12, 8
_EACH_S = 10.0


def measured(waiting: Sequence[int], copies: Sequence[int], latency_ms: float, jobs: int) -> dict[str, Any]:
    """`waiting`: jobs that are submitted at once; `copies` of the notes; `latency_ms` of a round trip to Redis."""
    rows = [*_over_waiting(waiting, jobs), *_over_chunks(copies, jobs), *_over_latency(latency_ms, jobs)]
    return {"leaves": LEAVES, "jobs": jobs, "rows": rows}


def _row(axis: str, at: object, run: Run, **more: object) -> dict[str, Any]:
    """`run`: without the processor time of this process, which submits, or passes on what is sent."""
    spent = Counter({name: seconds for name, seconds in run.cpu.items() if name != "client"})
    own = Run(run.jobs, run.wall_s, spent)
    return {"axis": axis, "at": at, "cpu_ms": own.cpu_ms(), "jobs/s": round(run.jobs_per_s, 1), **more}


def _over_waiting(counts: Sequence[int], jobs: int) -> Iterator[dict[str, Any]]:
    lanes = {"max_waiting_interactive": 2 * max(counts), "max_waiting_batch": 2 * max(counts), "tenant_share": 1.0}
    with tempfile.TemporaryDirectory(prefix="bench") as name:
        folder = Path(name) / "stack"
        ingested(folder, lanes=lanes)
        for count in counts:
            with stack(folder, lanes=lanes) as rig:
                rig.run(requests(_WARM, LEAVES, ("warm", count)))
                yield _row("waiting", count, _first(rig, count, jobs))


def _first(rig: RamifyRig, count: int, jobs: int) -> Run:
    """The first so many jobs to end behind the submission of all."""
    batch = rig.client.submit_many(requests(count + jobs, LEAVES, ("waiting", count)))
    key = BatchKeys(batch.batch_id).batch
    ended, spent, begun = _ended(rig, key), processes.cpu_seconds(rig.processes), time.perf_counter()
    while (found := _ended(rig, key) - ended) < jobs:
        assert time.perf_counter() - begun < jobs * _EACH_S, rig.client.why(batch.batch_id)
        time.sleep(0.1)
    return Run(found, time.perf_counter() - begun, processes.cpu_seconds(rig.processes) - spent)


def _ended(rig: RamifyRig, key: str) -> int:
    return int(rig.redis.hget(key, "finished") or 0)  # type: ignore[arg-type]


def _over_chunks(copies: Sequence[int], jobs: int) -> Iterator[dict[str, Any]]:
    for count in copies:
        with tempfile.TemporaryDirectory(prefix="bench") as name, stack(Path(name) / "stack") as rig:
            notes = Path(name) / "notes"
            _copied(notes, count)
            for _ in rig.client.ingest((notes,)):
                pass
            rig.run(requests(_WARM, LEAVES, ("warm", count)))
            yield _row("chunks", stored_chunks(rig), rig.run(requests(jobs, LEAVES, ("chunks", count))))


def _copied(folder: Path, count: int) -> None:
    """Each copy has a mark of its own: equal texts would be near-duplicates of each other."""
    for number in range(count):
        for path in NOTES.rglob("*.md"):
            target = folder / f"c{number}" / path.relative_to(NOTES)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text(encoding="utf-8", errors="ignore")
            target.write_text(f"{text}\n\nCopy {number} of {path.stem}.\n", encoding="utf-8")


def _over_latency(latency_ms: float, jobs: int) -> Iterator[dict[str, Any]]:
    for each in (0.0, latency_ms):
        with tempfile.TemporaryDirectory(prefix="bench") as name, _redis_behind(Path(name) / "redis", each) as url:
            folder, redis = Path(name) / "stack", {"url": url}
            ingested(folder, redis=redis)
            with stack(folder, redis=redis) as rig:
                rig.run(requests(_WARM, LEAVES, ("warm", each)))
                alone = [rig.run([one]).wall_s for one in requests(_ALONE, LEAVES, ("alone", each))]
                run = rig.run(requests(jobs, LEAVES, ("latency", each)))
                yield _row("ms to Redis", each, run, alone_s=round(statistics.median(alone), 2))


@contextmanager
def _redis_behind(folder: Path, latency_ms: float) -> Iterator[str]:
    """A Redis behind a proxy that holds what is sent to it, and what it replies, for half of that time."""
    server = RedisServer(folder, lasting=True).start()
    try:
        with Proxy(server.port) as proxy:
            proxy.delay_s = latency_ms / 2000
            yield proxy.url
    finally:
        server.process.kill()  # type: ignore[union-attr] # it was started above
        server.process.wait()  # type: ignore[union-attr]
