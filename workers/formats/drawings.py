"""Charts and diagrams of Office files by their XML: a table of what a chart shows, the items of a SmartArt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from workers.formats.parsed import table

#: Lines and categories of a chart.
_MOST_SERIES, _MOST_ROWS = 20, 200
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
#: What of the format of a number is shown as it stands, and what is left of that of a day.
_VERBATIM, _DAY = re.compile(r'"[^"]*+"|\[[^\[\]]*+\]|[\\_*].'), re.compile(r"[dy]", re.IGNORECASE)
#: The day 0 of Excel, and of the one for early Macs; what is beyond the last day is none.
_FIRST_DAY, _FIRST_DAY_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)  # noqa: DTZ001 - a sheet knows no zones
_DAYS = 2_900_000


def chart_of(drawing: Any) -> str:
    """The id of the part that has the chart of a drawing; "" for what is none."""
    return _related(drawing, f"{_CHART}chart", "id")


def diagram_of(drawing: Any) -> str:
    """The id of the part that has the texts of a SmartArt; "" for what is none."""
    return _related(drawing, f"{_DIAGRAM}relIds", "dm")


def _related(drawing: Any, tag: str, name: str) -> str:
    named = next(drawing.iter(tag), None)
    return "" if named is None else named.get(f"{_RELATION}{name}", "")


def chart(root: Any) -> Iterator[str]:
    """The title of a chart, and a table of its lines: those with the same categories side by side, a row for each."""
    title = next(root.iter(f"{_CHART}title"), None)
    if title is not None and title.getparent().tag == f"{_CHART}chart":
        yield _paragraphs(title)
    early = root.find(f"{_CHART}date1904")
    first_day = _FIRST_DAY_1904 if early is not None and early.get("val", "1") in {"1", "true"} else _FIRST_DAY
    lines = islice(root.iter(f"{_CHART}ser"), _MOST_SERIES)
    each = [(_points(line, first_day, "cat", "xVal"), _points(line, first_day, "val", "yVal"), line) for line in lines]
    for names, group in groupby(each, key=itemgetter(0)):
        columns = [(_name_of(line), values) for _, values, line in group]
        places = sorted({*names, *(place for _, values in columns for place in values)})[:_MOST_ROWS]
        rows = ([names.get(place, ""), *(values.get(place, "") for _, values in columns)] for place in places)
        yield table([["", *(name for name, _ in columns)], *rows]) if places else ""


def _points(line: Any, first_day: datetime, *axes: str) -> dict[int, str]:
    """What a line of a chart has on one of these axes: place -> what is shown there."""
    axis = next((found for name in axes if (found := line.find(f"{_CHART}{name}")) is not None), None)
    if axis is None:
        return {}
    level = next(axis.iter(f"{_CHART}lvl"), axis)
    general = next((code.text or "" for code in axis.iter(f"{_CHART}formatCode")), "")
    shown = (
        (point.get("idx", "0"), point.findtext(f"{_CHART}v") or "", point.get("formatCode", general))
        for point in level.iter(f"{_CHART}pt")
    )
    return {int(place): _shown(text, code, first_day) for place, text, code in shown}


def _shown(text: str, code: str, first_day: datetime) -> str:
    """A number as the chart's table has it: a day where its format is one of days."""
    if _DAY.search(_VERBATIM.sub("", code.partition(";")[0])):
        try:
            days = float(text)
        except ValueError:
            return text
        if 0 < days < _DAYS:
            day = first_day + timedelta(minutes=round(days * 24 * 60))
            return day.date().isoformat() if days.is_integer() else day.isoformat(" ", "minutes")
    return text.removesuffix(".0")


def _name_of(line: Any) -> str:
    named = line.find(f"{_CHART}tx")
    return "".join(value.text or "" for value in named.iter(f"{_CHART}v")) if named is not None else ""


def diagram(root: Any) -> str:
    """The texts of a SmartArt, as items."""
    texts = ("".join(text.text or "" for text in point.iter(f"{_DRAWING}t")) for point in root.iter(f"{_DIAGRAM}pt"))
    return "\n".join(f"- {' '.join(text.split())}" for text in texts if text.strip())


def _paragraphs(element: Any) -> str:
    texts = ("".join(text.text or "" for text in one.iter(f"{_DRAWING}t")) for one in element.iter(f"{_DRAWING}p"))
    return "\n".join(filter(None, texts))
