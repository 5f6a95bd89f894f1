"""Word by python-docx: paragraphs, lists and tables in the order of the body, headings by their styles, notes, charts.

What stands in fields of forms, in boxes and in tracked changes is text like any other; what was deleted is none. A
comment stands below its paragraph, as a quote of who wrote it; the head and foot of the first page stand where it has
its own, those that run over the pages are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import chain, islice
from zipfile import BadZipFile

from docx import Document
from docx.document import Document as DocxDocument
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.parser import parse_xml
from docx.text.paragraph import Paragraph
from lxml import etree

from workers.formats import drawings
from workers.formats.archive import checked_archive
from workers.formats.parsed import FilePart, FormatError, Parsed, about, heading, joined, quoted, table, unmarked

#: Word writes the names of its own styles in English, whatever language it speaks.
_LEVEL = re.compile(r"heading ?(\d)", re.IGNORECASE)
_MAX_ROWS, _MAX_COLUMNS = 20_000, 200
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_P, _TABLE, _ROW, _CELL, _BOX = f"{_W}p", f"{_W}tbl", f"{_W}tr", f"{_W}tc", f"{_W}txbxContent"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
#: What holds blocks, rows, cells or runs as if it were not there: fields of forms, what was inserted or moved here.
_AROUND = frozenset(f"{_W}{name}" for name in ("sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo"))
#: What of a paragraph is none of its text: settings, what was deleted, and boxes, which stand below it.
_LEFT_OUT = frozenset({_BOX, _FALLBACK, *(f"{_W}{name}" for name in ("pPr", "rPr", "sdtPr", "del", "moveFrom"))})
_CHARACTERS = {f"{_W}tab": "\t", f"{_W}ptab": "\t", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
#: Those of a formula, too.
_TEXTS = frozenset({f"{_W}t", "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"})
_DRAWING = f"{_W}drawing"
_NOTES = {
    "footnote": RELATIONSHIP_TYPE.FOOTNOTES,
    "endnote": RELATIONSHIP_TYPE.ENDNOTES,
    "comment": RELATIONSHIP_TYPE.COMMENTS,
}


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a file that is no Word document."""
    del name
    checked_archive(content)
    try:
        document = Document(BytesIO(content))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise FormatError(f"is no Word document with all its parts ({type(error).__name__}): save it anew") from None
    return joined((FilePart(text) for text in _blocks(document)), **about(document.core_properties))


def _blocks(document: DocxDocument) -> Iterator[str]:
    """Blocks; list items that follow each other are one."""
    items: list[str] = []
    notes, (first, last) = _notes_of(document), _edges(document)
    for text in chain.from_iterable(
        _texts(around, document, notes) for around in (*first, document.element.body, *last)
    ):
        if text.startswith("- "):
            items.append(text)
            continue
        if items:
            yield "\n".join(items)
            items = []
        yield text
    if items:
        yield "\n".join(items)


def _edges(document: DocxDocument) -> tuple[list[etree._Element], list[etree._Element]]:
    """What stands above and below the text of the first page, where that has a head and a foot of its own."""
    section = document.sections[0] if len(document.sections) else None
    if section is None or not section.different_first_page_header_footer:
        return [], []
    head, foot = (
        [] if one.is_linked_to_previous else [one._element]  # noqa: SLF001
        for one in (section.first_page_header, section.first_page_footer)
    )
    return head, foot


def _texts(
    around: etree._Element, document: DocxDocument, notes: Mapping[tuple[str, str], etree._Element]
) -> Iterator[str]:
    """The blocks in an element; below each paragraph its boxes, drawings and notes, below a table the latter two."""
    for block in _within(around, _P, _TABLE):
        if block.tag == _TABLE:
            yield _table(block)
            for paragraph in block.iter(_P):
                yield from _beside(paragraph, document, notes)
            continue
        yield _paragraph(Paragraph(block, document._body))  # noqa: SLF001
        for box in _own(block, _BOX):
            yield from _texts(box, document, notes)
        yield from _beside(block, document, notes)


def _own(paragraph: etree._Element, tag: str) -> Iterator[etree._Element]:
    """What of this name is in a paragraph, and in none of a box in it."""
    for found in paragraph.iter(tag):
        if next(found.iterancestors(_P)) is paragraph and next(found.iterancestors(_FALLBACK), None) is None:
            yield found


def _beside(
    paragraph: etree._Element, document: DocxDocument, notes: Mapping[tuple[str, str], etree._Element]
) -> Iterator[str]:
    """What a paragraph's charts and diagrams show, and its notes."""
    for drawing in _own(paragraph, _DRAWING):
        yield from _drawn(drawing, document)
    for kind in _NOTES:
        for mark in _own(paragraph, f"{_W}{kind}Reference"):
            note = notes.get((kind, mark.get(f"{_W}id", "")))
            yield _note(note) if note is not None else ""


def _drawn(drawing: etree._Element, document: DocxDocument) -> Iterator[str]:
    """What a chart or a diagram shows."""
    parts = document.part.related_parts
    if (found := drawings.chart_of(drawing)) in parts:
        yield from drawings.chart(parse_xml(parts[found].blob))
    elif (found := drawings.diagram_of(drawing)) in parts:
        yield drawings.diagram(parse_xml(parts[found].blob))


def _note(note: etree._Element) -> str:
    """A note; a comment as a quote of its author."""
    text = _lines_of(note)
    if note.tag != f"{_W}comment" or not text:
        return text
    return quoted(text, note.get(f"{_W}author", ""))


def _within(around: etree._Element, *tags: str) -> Iterator[etree._Element]:
    """The children of these names, also in what is around some of them."""
    for child in around:
        if child.tag in tags:
            yield child
        elif child.tag in _AROUND:
            yield from _within(child, *tags)


def _notes_of(document: DocxDocument) -> dict[tuple[str, str], etree._Element]:
    """The notes at the foot of pages and at the end, and comments, by kind and number."""
    parts = [part for part in document.part.rels.values() if not part.is_external]
    roots = (
        (kind, parse_xml(part.target_part.blob))
        for kind, reltype in _NOTES.items()
        for part in parts
        if part.reltype == reltype
    )
    return {(kind, note.get(f"{_W}id", "")): note for kind, root in roots for note in root}


def _paragraph(paragraph: Paragraph) -> str:
    text = _text_of(paragraph._p).strip()  # noqa: SLF001
    style = (paragraph.style.name or "") if paragraph.style is not None else ""
    if not text:
        return ""
    if style.lower() == "title":
        return heading(1, text)
    if level := _LEVEL.match(style):
        return heading(int(level[1]), text)
    is_item = style.lower().startswith("list") or next(paragraph._p.iter(f"{_W}numPr"), None) is not None  # noqa: SLF001
    return f"- {' '.join(text.split())}" if is_item else unmarked(text)


def _text_of(element: etree._Element) -> str:
    """The text of a paragraph or of a part of one."""
    if element.tag in _TEXTS:
        return element.text or ""
    if element.tag == f"{_W}br":
        return "\n" if element.get(f"{_W}type", "textWrapping") == "textWrapping" else ""
    if element.tag in _CHARACTERS:
        return _CHARACTERS[element.tag]
    return "".join(_text_of(child) for child in element if child.tag not in _LEFT_OUT)


def _lines_of(element: etree._Element) -> str:
    """All paragraphs in a cell or a note, those of tables in it as well."""
    return "\n".join(filter(None, (_text_of(paragraph).strip() for paragraph in element.iter(_P))))


def _table(block: etree._Element) -> str:
    rows = islice(_within(block, _ROW), _MAX_ROWS)
    return table([[_lines_of(cell) for cell in islice(_within(row, _CELL), _MAX_COLUMNS)] for row in rows])
