"""Draws lists: jobs, one job, batches, checks, an ingest's outcome, settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.answer import budget_line, cost_line, times_line
from orchestrator.cli.render.text import plain, snippet
from orchestrator.cli.render.tree import STATE_STYLES, state_text
from orchestrator.cli.wording import counted, duration
from orchestrator.explain.wording import worker_name
from shared.jobs.work import read_attempt
from shared.models import BatchStatus, JobStatus
from shared.models.status import BatchWhy, DeadLetter, Why


def columns(*names: str) -> Table:
    """An empty table without lines, that folds what does not fit."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def pairs(rows: Mapping[str, RenderableType | str]) -> Table:
    """Names on the left, values on the right."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(name, plain(value) if isinstance(value, str) else value)
    return grid


def draw_jobs(jobs: Sequence[JobStatus], now: float) -> Table:
    """One line a job; `now` is Unix seconds."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim", expand=True)
    for name in ("id", "state", "leaves", "age"):
        table.add_column(name, no_wrap=True)
    table.add_column("question", no_wrap=True, overflow="ellipsis", ratio=1)
    for job in jobs:
        age = duration(max(0.0, now - job.created_at) * 1000)
        leaves = f"{job.leaves_done + job.leaves_failed}/{job.leaves_total}"
        state = state_text(job.state, partial=job.partial)
        table.add_row(plain(job.job_id), state, leaves, age, plain(job.question))
    return table


def draw_job(job: JobStatus) -> RenderableType:
    """Everything that is known of one job."""
    leaves = f"{job.leaves_done} of {job.leaves_total} answered, {job.leaves_failed} failed"
    rows: dict[str, RenderableType | str] = {
        "job": job.job_id,
        "question": job.question,
        "state": state_text(job.state, partial=job.partial),
        "leaves": leaves,
        "lane": f"{job.lane}, tenant {job.tenant}",
    }
    if job.batch_id:
        rows["batch"] = job.batch_id
    rows |= retries(job)
    if job.error:
        rows["error"] = plain(job.error, "red")
    rows |= {"times": times_line(job.timings_ms), "cost": cost_line(job.cost)}
    if job.budget:
        rows["budget"] = budget_line(job.budget)
    return Group(pairs(rows), *(Text("Warning: ", "yellow").append(plain(warning)) for warning in job.warnings))


def retries(status: JobStatus | BatchStatus | Why | BatchWhy) -> dict[str, str]:
    """The jobs or batches that this one tries again, or is tried again as."""
    links = {"tries again": status.retry_of, "tried again as": status.retried_as}
    return {name: id_ for name, id_ in links.items() if id_}


def draw_batch(batch: BatchStatus, rate: float | None = None, elapsed_s: float | None = None) -> RenderableType:
    """Counts by state; with `rate` (jobs a second) how long the rest may take."""
    counts = Text()
    for state, count in sorted(batch.by_state.items()):
        counts.append(f"{count} ", STATE_STYLES.get(state, "cyan")).append(plain(state)).append("  ")
    rows: dict[str, RenderableType | str] = {
        "batch": batch.batch_id,
        "finished": f"{batch.finished} of {batch.total}",
        "by state": counts,
    }
    rows |= retries(batch)
    if batch.partial:
        rows["partial"] = f"{batch.partial} of those done"
    if batch.rejected:
        rows["rejected"] = counted(batch.rejected, "line")
    if batch.budget:
        rows["budget"] = budget_line(batch.budget)
    if elapsed_s is not None:
        rows["pace"] = _pace(batch, rate, elapsed_s)
    return pairs(rows)


def _pace(batch: BatchStatus, rate: float | None, elapsed_s: float) -> str:
    said = f"after {duration(elapsed_s * 1000)}"
    if not rate:
        return said
    left = (batch.total - batch.finished) / rate
    return f"{rate:.1f} jobs/s {said}" + (f", about {duration(left * 1000)} left" if left else "")


def draw_answers(rows: Sequence[tuple[str, str, bool, str, str]]) -> Table:
    """(job id, state, partial, question, error or beginning of the summary) of a batch's jobs."""
    table = columns("id", "state", "question and answer")
    table.columns[0].no_wrap = True
    for job_id, state, partial, question, said in rows:
        text = plain(question, "bold").append("\n").append(snippet(said))
        table.add_row(plain(job_id), state_text(state, partial=partial), text)
    return table


# --- Draws dead letters. Questions and paths in them are untrusted: control characters are left out. Pure.


def draw_dead_letters(dead_letters: Sequence[DeadLetter], total: int) -> RenderableType:
    """One line a dead letter."""
    table = columns("id", "when", "kind", "deaths", "tenant", "what")
    table.columns[0].no_wrap = True
    for dead_letter in dead_letters:
        table.add_row(
            plain(dead_letter.id), when(dead_letter.at), dead_letter.kind, str(len(dead_letter.proof)),
            plain(dead_letter.tenant), snippet(dead_letter.what, 80),
        )  # fmt: skip
    more = total - len(dead_letters)
    return Group(table, plain(f"{more} more: -n {total}", "dim")) if more > 0 else table


def draw_dead_letter(dead_letter: DeadLetter) -> RenderableType:
    """The work, why it was retired, and every worker that died of it."""
    rows: dict[str, RenderableType | str] = {
        "dead letter": dead_letter.id,
        "retired": when(dead_letter.at),
        "what": plain(dead_letter.what, "bold"),
        "why": plain(dead_letter.reason, "red"),
    }
    if dead_letter.kind == "work":
        rows |= {"job": dead_letter.job_id, "item": f"{dead_letter.item}, task {dead_letter.task}"}
    else:
        kept = "kept, so that it can be replayed" if dead_letter.has_content else "not kept: ingest it again"
        rows |= {"ingest": dead_letter.job_id, "document": f"{dead_letter.item}, {kept}"}
    rows["tenant"] = f"{dead_letter.tenant}, namespace {dead_letter.namespace}"
    table = columns("died", "worker", "task")
    for line in dead_letter.proof:
        mark = read_attempt(line)
        if mark is None:
            table.add_row("?", plain(line), "")
        else:
            table.add_row(f"after {when(mark.begun_at)}", plain(worker_name(mark.worker)), plain(mark.task))
    return Group(pairs(rows), table)


def when(seconds: float) -> str:
    """A time for people, in UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # written by hand
        return f"{seconds:g}"
