"""PowerPoint by python-pptx: slide by slide, title, texts, tables, charts and diagrams, notes, comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import chain
from typing import Any
from zipfile import BadZipFile

from lxml import etree
from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.exc import PackageNotFoundError
from pptx.oxml import parse_xml

from workers.formats import drawings
from workers.formats.archive import checked_archive
from workers.formats.parsed import FilePart, FormatError, Parsed, about, heading, joined, quoted, table

_MAX_DEPTH = 10


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a file that is no presentation."""
    del name
    checked_archive(content)
    try:
        slides = Presentation(BytesIO(content))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise FormatError(f"is no presentation ({type(error).__name__}): save it as .pptx anew") from None
    authors = {
        one.get("id", ""): one.get("name", "")
        for kind in ("/commentAuthors", "/authors")
        for root in _related(slides.part, kind)
        for one in root
    }
    return joined(
        (
            FilePart(text, f"slide {number}")
            for number, slide in enumerate(slides.slides, start=1)
            for text in chain(_texts(slide), _comments(slide, authors))
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


def _comments(slide: Any, authors: Mapping[str, str]) -> Iterator[str]:
    """The comments on a slide and the replies to them, as older and newer PowerPoints keep them."""
    for root in _related(slide.part, "/comments"):
        for one in root.iter("{*}cm", "{*}reply"):
            own = next((child for child in one if etree.QName(child).localname in {"text", "txBody"}), None)
            text = "" if own is None else "".join(own.itertext("{*}text", "{*}t"))
            yield quoted(text, authors.get(one.get("authorId", ""), ""))


def _related(part: Any, kind: str) -> Iterator[Any]:
    """The roots of the parts that a part names as of this kind."""
    for named in part.rels.values():
        if not named.is_external and named.reltype.endswith(kind):
            yield parse_xml(named.target_part.blob)


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
        elif related := drawings.chart_of(shape.element):
            yield from drawings.chart(parse_xml(shape.part.related_part(related).blob))
        elif related := drawings.diagram_of(shape.element):
            yield drawings.diagram(parse_xml(shape.part.related_part(related).blob))
