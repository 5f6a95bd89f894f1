"""`python -m tests.benchmarks.speed`: everything that is measured of speed, in one run, into docs/benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.speed import enqueue, graph, growth, ingest, path, peers, report, soak

_USUAL = ["graph", "enqueue", "ingest"]
_OUT = Path(__file__).parents[3] / "docs" / "benchmarks"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="*",
        default=_USUAL,
        choices=[*MEASURES],
        help=f"measures (default: {', '.join(_USUAL)})",
    )
    parser.add_argument("--leaves", nargs="*", type=int, default=[1, 8, 32], help="leaves a job")
    parser.add_argument("--jobs", type=int, default=120, help="jobs a round, of 8 leaves")
    parser.add_argument("--lines", type=int, default=100_000, help="lines a round that are enqueued")
    parser.add_argument("--files", type=int, default=150, help="files a round of each kind that are ingested")
    parser.add_argument("--soak", type=int, default=10_000, help="jobs of the soak, which takes half an hour")
    parser.add_argument("--waiting", nargs="*", type=int, default=[100, 10_000, 100_000], help="jobs that wait")
    parser.add_argument("--copies", nargs="*", type=int, default=[1, 10, 100], help="of the notes: 1,000 chunks each")
    parser.add_argument("--latency", type=float, default=2.0, help="ms of a round trip to Redis")
    parser.add_argument("--loads", nargs="*", type=float, default=[0.5, 0.9], help="shares of the most jobs a second")
    parser.add_argument("--peers", help="a Python that has the packages of peer_process.py")
    parser.add_argument("--llm", nargs="*", type=float, default=[0.0, 0.5, 5.0], help="seconds of a call of the LLM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=_OUT, help="folder of the report (default: docs/benchmarks)")
    parser.add_argument("--name", default="speed", help="of the report's files")
    chosen = parser.parse_args()
    if "peers" in chosen.only and not chosen.peers:
        parser.error("--peers is missing: name a Python that has the packages of peer_process.py")
    found = {"machine": report.machine()} | {name: MEASURES[name](chosen) for name in chosen.only}
    report.write(found, chosen.out, chosen.name)
    print((chosen.out / f"{chosen.name}.md").read_text(encoding="utf-8"))


MEASURES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "graph": lambda chosen: graph.measured(chosen.leaves, chosen.jobs, chosen.rounds),
    "enqueue": lambda chosen: enqueue.measured(chosen.lines, chosen.rounds),
    "growth": lambda chosen: growth.measured(chosen.waiting, chosen.copies, chosen.latency, chosen.jobs // 2),
    "ingest": lambda chosen: ingest.measured(chosen.files, chosen.rounds),
    "path": lambda chosen: path.measured(chosen.loads, chosen.jobs // 2),
    "peers": lambda chosen: peers.measured(chosen.peers, chosen.llm, chosen.jobs, chosen.rounds),
    "soak": lambda chosen: soak.measured(chosen.soak, max(1, chosen.soak // 10)),
}


if __name__ == "__main__":
    main()
