"""Draws lists and overviews: jobs, one job, dead letters. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from orchestrator.cli.render.answer import budget_line, cost_line, times_line
from orchestrator.cli.render.ingests import by_status, draw_ingest
from orchestrator.cli.render.tree import state_text
from orchestrator.cli.text import columns, duration, pairs, plain, snippet, stale_by, warnings, when
from orchestrator.diagnosis.wording import degraded_parts, waiting_for, worker_name
from shared.jobs.states import State, outcome_of
from shared.jobs.work import read_attempt
from shared.models import BatchStatus, JobStatus
from shared.models.status import BatchWhy, DeadLetter, Quarantined, Why


def draw_jobs(jobs: Sequence[JobStatus], now: float) -> Table:
    """One line a job; `now` is Unix seconds."""
    table = columns("id", "state", "leaves", "age", whole=("id", "state", "leaves", "age"))
    table.expand = True
    table.add_column("question", no_wrap=True, overflow="ellipsis", ratio=1)
    for job in jobs:
        age = duration(max(0.0, now - job.created_at) * 1000)
        leaves = f"{job.leaves_done + job.leaves_failed}/{job.leaves_total}"
        if job.ingest is not None:
            leaves = f"{job.ingest.read}/{job.ingest.files} files"
        failed = f" ({job.ingest.failed:,} failed)" if job.ingest is not None and job.ingest.failed else ""
        table.add_row(plain(job.job_id), state_text(_outcome(job)), leaves, age, plain(f"{job.question}{failed}"))
    return table


def _outcome(job: JobStatus) -> str:
    """How a job has ended, else its state."""
    return outcome_of(State(job.state), partial=job.partial, degraded=job.degraded) if job.terminal else job.state


def draw_job(job: JobStatus, now: float) -> RenderableType:
    """Everything that is known of one job; `now` is Unix seconds."""
    rows: dict[str, RenderableType | str] = {
        "job": job.job_id,
        "question": job.question,
        "state": state_text(job.state, partial=job.partial),
        **_extent(job),
        "degraded": plain(degraded_parts(job.degraded, job.degraded_at), "yellow"),
        "stale": plain(stale_by(job.stale), "yellow"),
        "waits": plain(
            "\n".join(f"{item}: {waiting_for(wait, now)}" for item, wait in job.postponed.items()), "yellow"
        ),
        "lane": f"{job.lane}, tenant {job.tenant}",
        "batch": job.batch_id or "",
        **retries(job),
        "error": plain(job.error or "", "red"),
        "times": times_line(job.timings_ms),
        "cost": cost_line(job.cost),
        "budget": budget_line(job.budget),
    }
    return Group(pairs(rows), *warnings(job.warnings))


def _extent(job: JobStatus) -> dict[str, RenderableType | str]:
    """How far it is: leaves of a question, files and documents of an ingest."""
    if job.ingest is None:
        return {"leaves": f"{job.leaves_done} of {job.leaves_total} answered, {job.leaves_failed} failed"}
    files = f"{job.ingest.read:,} of {job.ingest.files:,} read"
    return {"files": files, "documents": draw_ingest(by_status(job.ingest))}


def retries(status: JobStatus | BatchStatus | Why | BatchWhy) -> dict[str, str]:
    """The jobs or batches that this one tries again, or is tried again as."""
    rows = {
        "replays": (status.replay_of or "") if isinstance(status, JobStatus) else "",
        "tries again": status.retry_of or "",
        "tried again as": status.retried_as or "",
    }
    if isinstance(status, BatchStatus | BatchWhy) and (status.retries or status.repairs or status.refreshes):
        rows |= {"tried again as": ", ".join(status.retries), "repaired as": ", ".join(status.repairs)}
        rows["refreshed as"] = ", ".join(status.refreshes)
    return rows


def draw_dead_letters(dead_letters: Sequence[DeadLetter], total: int) -> RenderableType:
    """One line a dead letter."""
    table = columns("id", "when", "kind", "deaths", "tenant", "what", whole=("id",))
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
        attempt = read_attempt(line)
        if attempt is None:
            table.add_row("?", plain(line), "")
        else:
            table.add_row(f"after {when(attempt.begun_at)}", plain(worker_name(attempt.worker)), plain(attempt.task))
    return Group(pairs(rows), table)


def draw_quarantine(messages: Sequence[Quarantined]) -> RenderableType:
    """One line for each, with its first characters."""
    table = columns("when", "found in", "length", "why", "begins")
    for message in messages:
        table.add_row(
            when(message.at), plain(message.found_in), f"{message.length:,}", plain(message.reason),
            snippet(message.head, 60),
        )  # fmt: skip
    return table
