"""Draws dead letters. Questions and paths in them are untrusted: control characters are left out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType

from orchestrator.cli.render.tables import columns, pairs
from orchestrator.cli.render.text import plain, snippet
from orchestrator.explaining.wording import worker_name
from shared.job_store.work import read_mark
from shared.models.dead import DeadLetter


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
        mark = read_mark(line)
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
