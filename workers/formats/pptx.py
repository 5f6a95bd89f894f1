"""PowerPoint by python-pptx: slide by slide, its title, texts, tables, charts and diagrams as they stand, its notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import groupby, islice
from operator import itemgetter
from typing import Any
from zipfile import BadZipFile

from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.exc import PackageNotFoundError
from pptx.oxml import parse_xml

from workers.formats.archive import checked_archive
from workers.formats.parsed import FilePart, FormatError, Parsed, about, heading, joined, table

_MAX_DEPTH = 10
#: Lines and categories of a chart.
_MOST_SERIES, _MOST_ROWS = 20, 200
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a file that is no presentation."""
    del name
    checked_archive(content)
    try:
        slides = Presentation(BytesIO(content))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise FormatError(f"is no presentation ({type(error).__name__}): save it as .pptx anew") from None
    return joined(
        (
            FilePart(text, f"slide {number}")
            for number, slide in enumerate(slides.slides, start=1)
            for text in _texts(slide)
        ),
        **about(slides.core_properties),
    )


def _texts(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and title.has_text_frame:
        yield heading(2, title.text_frame.text)
    shapes = [shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id]
    yield from _shapes(sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)), 0)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        yield slide.notes_slide.notes_text_frame.text


def _shapes(shapes: Iterable[Any], depth: int) -> Iterator[str]:
    for shape in shapes:
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP and depth < _MAX_DEPTH:
            yield from _shapes(shape.shapes, depth + 1)
        elif shape.has_text_frame:
            paragraphs = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
            listed = len(paragraphs) > 1
            yield "\n".join(
                f"{'  ' * paragraph.level}- {' '.join(paragraph.text.split())}" if listed else paragraph.text
                for paragraph in paragraphs
            )
        elif getattr(shape, "has_table", False) and shape.has_table:
            yield table([[cell.text for cell in row.cells] for row in shape.table.rows])
        elif getattr(shape, "has_chart", False) and shape.has_chart:
            yield from _chart(shape.chart)
        else:
            yield _diagram(shape)


def _chart(chart: Any) -> Iterator[str]:
    """The title of a chart, and a table of its lines: those with the same categories side by side, a row for each."""
    if chart.has_title and chart.chart_title.has_text_frame:
        yield chart.chart_title.text_frame.text
    lines = islice(chart._chartSpace.iter(f"{_CHART}ser"), _MOST_SERIES)  # noqa: SLF001 - `plots` knows not every kind
    each = [(_points(line, "cat", "xVal"), _points(line, "val", "yVal"), _name_of(line)) for line in lines]
    for names, group in groupby(each, key=itemgetter(0)):
        columns = [(name, values) for _, values, name in group]
        places = sorted({*names, *(place for _, values in columns for place in values)})[:_MOST_ROWS]
        rows = ([names.get(place, ""), *(values.get(place, "") for _, values in columns)] for place in places)
        yield table([["", *(name for name, _ in columns)], *rows]) if places else ""


def _points(line: Any, *axes: str) -> dict[int, str]:
    """What a line of a chart has on one of these axes: place -> what is shown there."""
    axis = next((found for name in axes if (found := line.find(f"{_CHART}{name}")) is not None), None)
    if axis is None:
        return {}
    level = next(axis.iter(f"{_CHART}lvl"), axis)
    shown = ((point.get("idx", "0"), point.findtext(f"{_CHART}v") or "") for point in level.iter(f"{_CHART}pt"))
    return {int(place): text.removesuffix(".0") for place, text in shown}


def _name_of(line: Any) -> str:
    named = line.find(f"{_CHART}tx")
    return "".join(value.text or "" for value in named.iter(f"{_CHART}v")) if named is not None else ""


def _diagram(shape: Any) -> str:
    """The texts of a SmartArt, as items; "" for what is none."""
    frame = next(shape.element.iter(f"{_DIAGRAM}relIds"), None)
    if frame is None:
        return ""
    points = parse_xml(shape.part.related_part(frame.get(f"{_RELATION}dm")).blob).iter(f"{_DIAGRAM}pt")
    texts = ("".join(text.text or "" for text in point.iter(f"{_DRAWING}t")) for point in points)
    return "\n".join(f"- {' '.join(text.split())}" for text in texts if text.strip())
