"""Text for people, safe for a terminal: no escapes, no hidden direction marks, and never read as markup.

Quick to import: rich is loaded by the functions that return its `Text`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from orchestrator.text_lines import one_line
from shared.hidden import visible

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType
    from rich.table import Table
    from rich.text import Text

    from shared.models.route import Route
    from shared.models.stale import StaleMark

_CITATION = r"\[\d{1,3}\]"
_HEADING = re.compile(r"#{1,6} +")
#: Documents that a stale answer names.
_MOST_MARKS = 3


def duration(ms: float) -> str:
    """Milliseconds for people: 12 ms, 1.2 s, 2 min 03 s."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 100_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    return f"{minutes} min {seconds:02d} s"


def counted(number: int, thing: str) -> str:
    """1 hit, 2 hits."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def score(value: float) -> str:
    """A score with four significant digits: rerankers differ too much in scale for fixed places."""
    return f"{value:.4g}"


def read_as(route: Route) -> str:
    """The type of a job's question, by the rules or the LLM, and the route that followed from it."""
    kind = f"{route.type.value}, {route.hops.value}" if route.hops else route.type.value
    read = f"{kind} ({route.intent.value}, {route.confidence:.2f} by {route.by}{', unsure' if route.unsure else ''})"
    return f"{read}: planner {route.planner.value}, strategy {route.strategy}, aggregator {route.aggregator}"


def plain(text: str, style: str = "") -> Text:
    """One safe line; rich reads no markup in it."""
    from rich.text import Text

    return Text(one_line(text), style=style)


def cited(text: str) -> Text:
    """Several safe lines: Markdown headings in bold, the citation marks `[n]` lifted out."""
    from rich.text import Text

    lines = []
    for line in visible(text).strip().split("\n"):
        heading = _HEADING.match(line)
        lines.append(Text(line[heading.end() :], "bold") if heading else Text(line))
    shown = Text("\n").join(lines)
    shown.highlight_regex(_CITATION, "bold cyan")
    return shown


def heading(title: str) -> Iterator[Text]:
    """A blank line, then the title of a part."""
    yield plain("")
    yield plain(title, "bold underline")


def pair(name: str, text: str, style: str = "dim") -> Text:
    """One line: the name, then its text in plain."""
    from rich.text import Text

    return Text(f"{name}: ", style or "bold").append(plain(text))


def warnings(sentences: Collection[str]) -> Iterator[Text]:
    """A line for each."""
    return (pair("Warning", sentence, "yellow") for sentence in sentences)


def snippet(text: str, columns: int = 160) -> Text:
    """The beginning of a passage as one line of at most `columns` cells (a CJK character fills two)."""
    shown = plain(text, "dim")
    shown.truncate(columns, overflow="ellipsis")
    return shown


def columns(*names: str, right: Collection[str] = (), whole: Collection[str] = ()) -> Table:
    """An empty table without lines, that folds what does not fit; the columns in `whole` never fold."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for name in names:
        justify: JustifyMethod = "right" if name in right else "left"
        table.add_column(plain(name), justify=justify, overflow="fold", no_wrap=name in whole)
    return table


def numbered() -> Table:
    """An empty grid: numbers on the left, text on the right."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def pairs(rows: Mapping[str, RenderableType | str]) -> Table:
    """Names on the left, values on the right; a pair with an empty value is left out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        if value:
            grid.add_row(name, plain(value) if isinstance(value, str) else value)
    return grid


def when(seconds: float) -> str:
    """A time for people, in UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # written by hand
        return f"{seconds:g}"


def stale_by(marks: Sequence[StaleMark]) -> str:
    """By which documents an answer is stale, and since when; the first of them by name."""
    if not marks:
        return ""
    named = ", ".join(f"{mark.path} ({mark.by})" for mark in marks[:_MOST_MARKS])
    more = f" and {len(marks) - _MOST_MARKS} more" if len(marks) > _MOST_MARKS else ""
    return f"since {when(marks[0].since)}: {named}{more}"
