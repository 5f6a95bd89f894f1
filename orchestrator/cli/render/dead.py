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


def draw_letters(letters: Sequence[DeadLetter], total: int) -> RenderableType:
    """One line a letter."""
    table = columns("id", "when", "kind", "deaths", "tenant", "what")
    table.columns[0].no_wrap = True
    for letter in letters:
        table.add_row(
            plain(letter.id), when(letter.at), letter.kind, str(len(letter.proof)), plain(letter.tenant),
            snippet(letter.what, 80),
        )  # fmt: skip
    more = total - len(letters)
    return Group(table, plain(f"{more} more: -n {total}", "dim")) if more > 0 else table


def draw_letter(letter: DeadLetter) -> RenderableType:
    """The work, why it was retired, and every worker that died of it."""
    rows: dict[str, RenderableType | str] = {
        "letter": letter.id,
        "retired": when(letter.at),
        "what": plain(letter.what, "bold"),
        "why": plain(letter.reason, "red"),
    }
    if letter.kind == "work":
        rows |= {"job": letter.job_id, "item": f"{letter.item}, task {letter.task}"}
    else:
        kept = "kept, so that it can be replayed" if letter.has_content else "not kept: ingest it again"
        rows |= {"ingest": letter.job_id, "document": f"{letter.item}, {kept}"}
    rows["tenant"] = f"{letter.tenant}, namespace {letter.namespace}"
    table = columns("died", "worker", "task")
    for line in letter.proof:
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
