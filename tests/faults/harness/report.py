"""The table of a round, and, when something is wrong, all that is needed to find out what."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from orchestrator.local.state import tail
from tests.faults.harness.rig import Rig
from tests.faults.harness.rounds import Round

_JOBS, _FAULTS = 4, 25


def spread(seconds: Sequence[float]) -> str:
    """`min / median / p95 / max`, and of how many."""
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"{ordered[0]:.1f} / {statistics.median(ordered):.1f} / {p95:.1f} / {ordered[-1]:.1f} s of {len(ordered)}"


def show(rounds: Sequence[Round]) -> None:
    """Print a table, one row a round."""
    table = Table("round", "seed", "jobs", "ended", "partial", "kills", "leaf back", "step back", "redriven", "jobs/s",
                  title="min / median / p95 / max")  # fmt: skip
    for one in rounds:
        kills = ", ".join(f"{name} {times}" for name, times in sorted(one.kills.per_pool().items()))
        ended = ", ".join(f"{state} {count}" for state, count in one.states.most_common())
        jobs = f"{len(one.jobs)}" + (f", {len(one.sent.refused)} refused" if one.sent.refused else "")
        table.add_row(
            one.plan.name, str(one.plan.seed), jobs, ended, str(one.partial), kills or "-", spread(one.recovery.leaves),
            spread(one.recovery.steps), str(one.recovery.redriven.total()), f"{len(one.jobs) / one.seconds:.1f}",
        )  # fmt: skip
        why = ", ".join(f"{times} ({reason})" for reason, times in one.recovery.redriven.most_common())
        table.caption = f"sent again: {why or 'nothing'}"
    Console(width=180, force_terminal=False).print(table)


def verdict(rig: Rig, one: Round) -> None:
    """Raises: AssertionError with seed, faults, jobs, events and logs when the round has faults."""
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
        lines += [f"\njob {job.job_id}: {fields}", f"  leaves {job.leaves}"]
        lines += [f"  {at - began:8.3f} { ({k: v[:90] for k, v in event.items()}) }" for at, event in job.events]
    lines.append(f"\nkills (Unix seconds): {[(round(kill.at, 2), kill.name, kill.pid) for kill in one.kills.done]}")
    for log in sorted(rig.logs().glob("*.log")):
        lines.append(f"\n{log.name}:\n{tail(log, 12)}")
    raise AssertionError("\n".join(lines))
