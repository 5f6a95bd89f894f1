"""Where in its file a passage stands, in the terms of its format. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import Field

from shared.models.base import Model

#: The offset in a text at which a line of a page begins, and its box in points from the lower left corner of the page:
#: left, bottom, right, top.
LineBox = tuple[int, int, int, int, int]
Box = tuple[int, int, int, int]
_NAMES = re.compile(
    r"(?:.*, )?(?:p\. (?P<page>\d+)|slide (?P<slide>\d+)|cell (?P<cell>\d+)|message (?P<message>\d+)"
    r"|chapter (?P<chapter>\d+)(?: \(.*\))?)"
    r"|(?:(?>.*?, (?=sheet ))?sheet (?P<sheet>.+), |.*, )?rows (?P<first>\d+)-(?P<last>\d+)",
    re.DOTALL,
)


class Place(Model):
    """Where a passage begins. `name` is what people read ("p. 3"); what a format does not have is None."""

    name: str = ""
    page: int | None = None
    box: Box | None = Field(
        default=None, description="of its lines on that page: left, bottom, right, top, in points from the lower left"
    )
    slide: int | None = None
    sheet: str | None = None
    rows: tuple[int, int] | None = Field(default=None, description="first and last row of the table that holds it")
    cell: int | None = Field(default=None, description="of a notebook")
    message: int | None = Field(default=None, description="of a mailbox")
    chapter: int | None = None
    heading: tuple[str, ...] = ()


def place_of(name: str, heading: str = "", box: Box | None = None) -> Place:
    """The place that a reader has named so."""
    found = _NAMES.fullmatch(name)
    said = found.groupdict() if found else {}
    numbers = {key: int(said[key]) for key in ("page", "slide", "cell", "message", "chapter") if said.get(key)}
    rows = (int(said["first"]), int(said["last"])) if said.get("first") else None
    path = tuple(filter(None, heading.split(" > ")))
    return Place(name=name, sheet=said.get("sheet"), rows=rows, box=box, heading=path, **numbers)


def box_of(lines: Sequence[Box]) -> Box | None:
    """The smallest box around these."""
    if not lines:
        return None
    left, bottom, right, top = zip(*lines, strict=True)
    return min(left), min(bottom), max(right), max(top)
