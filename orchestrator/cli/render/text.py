"""Text from people, documents and models as rich shows it: cleaned, and never read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from orchestrator.cli.wording import clean, one_line

_CITATION = r"\[\d{1,3}\]"
_HEADING = re.compile(r"#{1,6} +")


def plain(text: str, style: str = "") -> Text:
    """One safe line; rich reads no markup in it."""
    return Text(one_line(text), style=style)


def cited(text: str) -> Text:
    """Several safe lines: Markdown headings in bold, the citation marks `[n]` lifted out."""
    lines = []
    for line in clean(text).strip().split("\n"):
        heading = _HEADING.match(line)
        lines.append(Text(line[heading.end() :], "bold") if heading else Text(line))
    shown = Text("\n").join(lines)
    shown.highlight_regex(_CITATION, "bold cyan")
    return shown


def heading(title: str) -> Iterator[Text]:
    """A blank line, then the title of a part."""
    yield Text()
    yield Text(title, "bold underline")


def pair(name: str, text: str, style: str = "dim") -> Text:
    """One line: the name, then its text in plain."""
    return Text(f"{name}: ", style or "bold").append(plain(text))


def snippet(text: str, columns: int = 160) -> Text:
    """The beginning of a passage as one line of at most `columns` cells (a CJK character fills two)."""
    shown = plain(text, "dim")
    shown.truncate(columns, overflow="ellipsis")
    return shown
