"""Draws batches: the accounts of one, a list of them, and what became of each line. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.text import Text

from orchestrator.cli.render.answer import budget_line
from orchestrator.cli.render.tables import retries
from orchestrator.cli.render.tree import STATE_STYLES
from orchestrator.cli.text import duration, pairs
from shared.models import BatchStatus


def draw_batch(batch: BatchStatus, rate: float | None = None, elapsed_s: float | None = None) -> RenderableType:
    """Its accounts, as sums; with `rate` (jobs a second) how long the rest may take."""
    waits = f"{batch.known_open:,} of the known jobs" if batch.known_open else ""
    return pairs(
        {
            "batch": batch.batch_id,
            "lines": _sum(batch.lines, batch.kinds()),
            "jobs": _sum(batch.enqueued, batch.outcomes()),
            "finished": f"{batch.finished:,} of {batch.enqueued:,}",
            "also open": waits,
            **retries(batch),
            "reasons": _listed(dict(sorted(batch.reasons.items()))),
            "budget": budget_line(batch.budget),
            "pace": "" if elapsed_s is None else _pace(batch, rate, elapsed_s),
        }
    )


def _sum(total: int, parts: Mapping[str, int]) -> Text:
    """6,000 = 200 enqueued + 5,800 known."""
    shown = Text(f"{total:,}")
    for place, (name, count) in enumerate(parts.items()):
        shown.append(" + " if place else " = ", "dim").append(f"{count:,} ", STATE_STYLES.get(name, "cyan")).append(
            name
        )
    return shown


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def accounts_line(batch: BatchStatus) -> str:
    """Its accounts in one line: 6,000 lines = 200 enqueued + 5,800 known; 200 jobs = 150 done + 50 open."""
    return f"lines {_sum(batch.lines, batch.kinds()).plain}; jobs {_sum(batch.enqueued, batch.outcomes()).plain}"


def _pace(batch: BatchStatus, rate: float | None, elapsed_s: float) -> str:
    elapsed = f"after {duration(elapsed_s * 1000)}"
    if not rate:
        return elapsed
    left = (batch.open + batch.known_open) / rate
    return f"{rate:.1f} jobs/s {elapsed}" + (f", about {duration(left * 1000)} left" if left else "")
