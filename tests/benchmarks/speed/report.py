"""Writes what was measured: JSON for programs, Markdown for people."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """What it was measured on; load of the last minute as the kernel gives it."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 1),
    }


def write(found: Mapping[str, Any], folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(found), encoding="utf-8")


def markdown(found: Mapping[str, Any]) -> str:
    parts = ["# Speed, measured side by side", _about(found["machine"])]
    parts += [text for name, text in SECTIONS.items() if name in found for text in [text(found[name])]]
    return "\n\n".join(parts) + "\n"


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def _about(machine: Mapping[str, Any]) -> str:
    return (
        f"Written by `make bench` on {machine['at']}: {machine['cores']} cores, Python {machine['python']}, load "
        f"{machine['load_before']} before. Every row is a median over rounds in which all columns took turns; on a "
        "busy machine, read the ratios."
    )


def _graph(found: Mapping[str, Any]) -> str:
    rows, used = [], []
    for shape in found["shapes"]:
        ours, bare, work = shape["ramify"], shape["bare"], shape["in process"]
        split = _split(ours["cpu_ms"])
        cpu = [one["cpu_ms"]["all"] for one in (ours, bare, work)]
        rate = [one["jobs_per_s"] for one in (ours, bare, work)]
        rows.append([shape["leaves"], *cpu, shape["ratios"]["cpu / (bare + in process)"], *rate, split])
        use = shape["redis"]
        used.append([shape["leaves"], *(use[name] for name in _USE)])
    head = ["leaves", "CPU ms a job", "bare graph", "in process", "ratio to their sum"]
    head += ["jobs/s", "bare graph", "in process", "CPU by process"]
    kept = table(["key", "KB a job"], [[f"`{kind}`", size] for kind, size in list(found["kept KB"].items())[:20]])
    return "\n\n".join([
        "## A job beside a bare graph and the work alone",
        f"No models, {found['chunks']} chunks. The bare graph: no-op tasks of the same shape, pools and Redis.",
        table(head, rows),
        "## Redis, a job",
        table(["leaves", *_USE], used),
        f"At rest: {found['idle calls/s']} calls a second. Kept after all shapes, on average a job:",
        kept,
    ])  # fmt: skip


_USE = ["calls", "scripts", "publish", "transactions", "round_trips", "kb_in", "kb_out", "kb_kept"]


def _enqueue(found: Mapping[str, Any]) -> str:
    rows = [
        [name, found[name]["ramify"], found[name]["loop"], ratio]
        for name, ratio in (("lines/s", found["ratios"]["lines/s"]), ("cpu us", found["ratios"]["cpu"]))
    ]
    used = found["redis"]
    return "\n\n".join([
        f"## {found['lines']:,} lines into the admission queues",
        table(["a line", "Ramify", "loop of apply_async", "ratio"], rows),
        f"{used['calls']} Redis calls a line; a waiting job keeps {used['kb_kept']} kB.",
    ])  # fmt: skip


def _ingest(found: Mapping[str, Any]) -> str:
    rows = [[kind, *(one[part] for part in _INGESTED)] for kind, one in found["kinds"].items()]
    return "\n\n".join([f"## Ingest, {found['files']} files of each kind", table(["kind", *_INGESTED], rows)])


def _growth(found: Mapping[str, Any]) -> str:
    rows = [
        [row["axis"], row["at"], row["cpu_ms"]["all"], row["jobs/s"], row.get("alone_s", ""), _split(row["cpu_ms"])]
        for row in found["rows"]
    ]
    head = ["", "at", "CPU ms a job", "jobs/s", "one alone, s", "CPU by process"]
    return "\n\n".join([f"## What a job of {found['leaves']} leaves costs as something grows", table(head, rows)])


def _split(cpu_ms: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {ms:.0f}" for name, ms in cpu_ms.items() if name != "all" and ms >= 1)


def _soak(found: Mapping[str, Any]) -> str:
    rows = [[*(row[part] for part in _SOAKED), *row["mb"].values()] for row in found["rows"]]
    grown = ", ".join(f"{name} {size:+}" for name, size in found["grown MB"].items())
    return "\n\n".join([
        f"## {found['rows'][-1]['jobs']:,} jobs of {found['leaves']} leaves through one stack",
        table([*_SOAKED, *(f"{name} MB" for name in found["rows"][0]["mb"])], rows),
        f"Grown since the first row, MB: {grown}. Redis kept {found['kB a job']} kB a job.",
    ])  # fmt: skip


_SOAKED = ["jobs", "jobs/s", "redis kB", "keys", "channels", "connections"]
_INGESTED = ["chunks", "chunks/s", "cpu ms a chunk"]


def _path(found: Mapping[str, Any]) -> str:
    about = (
        f"What a question has to wait for takes {found['critical_s']:.2f} s. The load is a share of "
        f"{found['most jobs/s']} jobs a second, which ended when all were there at once; questions come by chance."
    )
    rows = [[row["load"], row["median"], row["p90"]] for row in found["rows"]]
    head = ["load", "wall / critical path, median", "90 % below"]
    return "\n\n".join(["## Beside the model calls that a question waits for", about, table(head, rows)])


def _peers(found: Mapping[str, Any]) -> str:
    names = list(found["rows"][0]["of"])
    rows = [
        [f"{row['llm_s']:g} s", part, *(row["of"][name][part] for name in names)]
        for row in found["rows"]
        for part in ("jobs/s", "cpu_ms", "alone_s")
    ]
    about = (
        "The same notes, fake LLM and questions, two calls a question. Ramify as shipped (it reranks, keeps every step "
        "and checks citations); each peer in one process, with BM25 over "
        f"{max(found['chunks'].values())} chunks, its own way to several searches, and one answer from what they found."
    )
    title = f"## Beside peers, {found['in_flight']} questions in flight"
    return "\n\n".join([title, about, table(["a call of the LLM", "", *names], rows)])


SECTIONS = {
    "graph": _graph,
    "enqueue": _enqueue,
    "ingest": _ingest,
    "growth": _growth,
    "path": _path,
    "peers": _peers,
    "soak": _soak,
}
