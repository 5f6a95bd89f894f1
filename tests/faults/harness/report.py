"""The table of a round, and, when something is wrong, all that is needed to find out what."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

import pytest
from rich.console import Console
from rich.table import Table

from orchestrator.local.state import tail
from tests.faults.harness.jobs import Seen
from tests.faults.harness.rig import Rig
from tests.faults.harness.rounds import Round

_JOBS, _FAULTS = 4, 25


def spread(seconds: Sequence[float]) -> str:
    """Least, median, 95th percentile and most, and of how many."""
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    median = statistics.median(ordered)
    return f"min {ordered[0]:.1f}, median {median:.1f}, p95 {p95:.1f}, max {ordered[-1]:.1f} s, of {len(ordered)}"


def show(one: Round) -> None:
    """Print what came of a round."""
    table = Table(title=f"{one.plan.name}, RAMIFY_TEST_SEED={one.plan.seed}", show_header=False)
    refused = Counter(reason for _, reason in one.sent.refused)
    unanswered = Counter(_plain(job.fields.get("error", "")) for job in one.jobs.values() if _failed(job))
    rows = {
        "jobs": _counts(one.states),
        "partial": str(one.partial),
        "unanswered": _counts(unanswered),
        "jobs/s": f"{len(one.jobs) / one.seconds:.1f}, all ended after {one.seconds:.0f} s",
        "kills": _counts(one.kills.per_pool()),
        "leaf back": spread(one.recovery.leaves),
        "step back": spread(one.recovery.steps),
        "sent again": _counts(one.recovery.redriven),
        "refused": _counts(refused),
    }
    for name, text in rows.items():
        table.add_row(name, text)
    Console(width=140, force_terminal=False).print(table)


def _failed(job: Seen) -> bool:
    return job.state not in {"done", "cancelled"}


def _plain(reason: str) -> str:
    """Without what is different for each job."""
    return reason.partition(";")[0]


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{times} {name}" for name, times in counts.most_common()) or "none"


def verdict(rig: Rig, one: Round) -> None:
    """Fails the test with seed, faults, jobs, events and logs when the round has faults."""
    if not one.faults:
        return
    named = [job for job_id, job in one.jobs.items() if any(job_id in fault for fault in one.faults)]
    lines = [
        f"{one.plan.name}: {len(one.faults)} faults; again with RAMIFY_TEST_SEED={one.plan.seed}",
        *one.faults[:_FAULTS],
    ]
    for job in named[:_JOBS]:
        began = job.events[0][0] if job.events else 0.0
        fields = {name: value for name, value in job.fields.items() if name not in {"request", "route"}}
        lines += [f"\njob {job.job_id}: {fields}", f"  leaves {job.leaves}, work {job.work}"]
        lines += [f"  {at - began:8.3f} { ({k: v[:90] for k, v in event.items()}) }" for at, event in job.events]
    lines.append(f"\nkills (Unix seconds): {[(round(kill.at, 2), kill.name, kill.pid) for kill in one.kills.done]}")
    for log in sorted(rig.logs().glob("*.log")):
        lines.append(f"\n{log.name}:\n{tail(log, 12)}")
    pytest.fail("\n".join(lines), pytrace=False)
