"""Chunks a second into the index by kind of file, keyword search only, through the whole stack."""

from __future__ import annotations

import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shared.contract import TaskName
from shared.tasks.app import make_app
from tests.benchmarks.speed import processes
from tests.benchmarks.speed.questions import NOTES
from tests.benchmarks.speed.rigs import RamifyRig, stack

_LEAST_BYTES = 400


def measured(files: int, rounds: int) -> dict[str, Any]:
    """`files` of each kind; every round brings others, so that none is known."""
    with tempfile.TemporaryDirectory(prefix="bench") as name, stack(Path(name) / "stack") as rig:
        rig.redis.ping()
        runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in _SOURCES}
        for turn in range(rounds + 1):
            for kind, sources in _SOURCES.items():
                folder = Path(name) / f"{kind}{turn}"
                _made(folder, kind, turn, list(sources()), files if turn else files // 4)
                found = _run(rig, folder)
                if turn:  # the first round warms up
                    runs[kind].append(found)
    return {
        "files": files,
        "kinds": {kind: {part: _median(found, part) for part in found[0]} for kind, found in runs.items()},
    }


def _median(found: list[dict[str, float]], part: str) -> float:
    return round(statistics.median(one[part] for one in found), 1)


def _run(rig: RamifyRig, folder: Path) -> dict[str, float]:
    chunks, before = stored_chunks(rig), processes.cpu_seconds(rig.processes)
    begun = time.perf_counter()
    last = list(rig.client.ingest((folder,)))[-1]
    wall_s = time.perf_counter() - begun
    spent = (processes.cpu_seconds(rig.processes) - before).total()
    made = stored_chunks(rig) - chunks
    assert made > 0, last
    return {"chunks": made, "chunks/s": made / wall_s, "cpu ms a chunk": 1000 * spent / made}


def stored_chunks(rig: RamifyRig) -> int:
    """Of all documents, as the search pool says."""
    name = TaskName.SEARCH_INFO
    with make_app(rig.settings) as app:
        said = app.send_task(name.value, queue=name.queue.value).get(timeout=30)
    return int(said["collection"]["points"]) if said["collection"] else 0


def _made(folder: Path, kind: str, turn: int, sources: list[Path], files: int) -> None:
    folder.mkdir()
    for number in range(files):
        text = sources[number % len(sources)].read_text(encoding="utf-8", errors="ignore")
        mark = f"\n\n# {kind} {turn} {number}\n" if kind != ".txt" else f"\n\n{kind} {turn} {number}\n"
        (folder / f"f{turn}_{number}{kind}").write_text(text + mark, encoding="utf-8")


def _notes() -> Iterator[Path]:
    return (path for path in sorted(NOTES.rglob("*.md")) if path.stat().st_size > _LEAST_BYTES)


def _code() -> Iterator[Path]:
    folder = Path(sysconfig.get_paths()["stdlib"]) / "asyncio"
    return (path for path in sorted(folder.glob("*.py")) if path.stat().st_size > _LEAST_BYTES)


_SOURCES = {".md": _notes, ".txt": _notes, ".py": _code}
