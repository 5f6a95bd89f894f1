"""Draws a complete list (E3): how many, what was looked through, and its first rows with their sources. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from orchestrator.cli.render.text import plain, snippet
from orchestrator.cli.wording import counted
from shared.models.enumeration import Row, Table

_SENTENCE_COLUMNS = 120


def draw_table(job_id: str, table: Table, most: int) -> Iterator[RenderableType]:
    """The headline, at most `most` rows, and how to get the others."""
    yield _headline(table)
    for note in _notes(table):
        yield Text(note, "yellow")
    shown = table.rows[:most]
    if shown:
        yield Text()
        yield _rows(shown, table.columns)
    if table.matched > len(shown):
        yield plain(f"{table.matched - len(shown)} more: `ramify result {job_id} --rows` shows all of them", "dim")


def _headline(table: Table) -> Text:
    shown = Text(counted(table.matched, "document"), "bold")
    if table.understood:
        shown.append(" · ").append(plain(table.understood))
    coverage = table.coverage or f"scanned {table.scanned} of {table.planned} documents"
    return shown.append(" · ").append(plain(coverage, "yellow" if table.partial else "green"))


def _notes(table: Table) -> Iterator[str]:
    if table.partial:
        yield "The list is not complete: the job's time was up, or a part of the corpus was not read."
    if table.changed:
        yield "The corpus was written while it was read."
    if table.copies:
        yield f"{table.copies} of them have the same text as an earlier row."
    if table.dropped:
        yield f"{counted(table.dropped, 'value')} of the model that stand in no document were left out."


def _rows(rows: tuple[Row, ...], columns: tuple[str, ...]) -> Grid:
    grid = Grid(box=None, padding=(0, 1), pad_edge=False, header_style="dim", expand=False)
    grid.add_column("#", justify="right", no_wrap=True)
    grid.add_column("document", overflow="fold", ratio=3)
    for name in columns:
        grid.add_column(plain(name), overflow="fold", ratio=2)
    if not columns:
        grid.add_column("says", overflow="fold", ratio=4)
    for number, row in enumerate(rows, 1):
        told = [plain(row.fields.get(name, "")) for name in columns] or [snippet(row.sentence, _SENTENCE_COLUMNS)]
        grid.add_row(str(number), _document(row), *told)
    return grid


def _document(row: Row) -> Text:
    """Title; source, date and what it is a copy of under it."""
    where = f"{row.path} {row.date}" if row.date else row.path
    shown = plain(row.title, "bold").append("\n").append(plain(where, "dim"))
    return shown.append(f"  as {row.copy_of}", "dim") if row.copy_of else shown
