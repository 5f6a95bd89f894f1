"""Word by python-docx: paragraphs, lists and tables in the order of the body, headings by their styles, notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from zipfile import BadZipFile

from docx import Document
from docx.document import Document as DocxDocument
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph

from workers.formats.archive import checked_archive
from workers.formats.parsed import FilePart, FormatError, Parsed, about, heading, joined, table

#: Word writes the names of its own styles in English, whatever language it speaks.
_LEVEL = re.compile(r"heading ?(\d)", re.IGNORECASE)
_MAX_ROWS, _MAX_COLUMNS = 20_000, 200
_NUMBERING = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}numPr"


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
    for block in document.iter_inner_content():
        text = _table(block) if isinstance(block, Table) else _paragraph(block)
        if text.startswith("- "):
            items.append(text)
            continue
        if items:
            yield "\n".join(items)
            items = []
        yield text
    if items:
        yield "\n".join(items)


def _paragraph(paragraph: Paragraph) -> str:
    text = paragraph.text.strip()
    style = (paragraph.style.name or "") if paragraph.style is not None else ""
    if not text:
        return ""
    if style.lower() == "title":
        return heading(1, text)
    if level := _LEVEL.match(style):
        return heading(int(level[1]), text)
    is_item = style.lower().startswith("list") or next(paragraph._p.iter(_NUMBERING), None) is not None  # noqa: SLF001
    return f"- {' '.join(text.split())}" if is_item else text


def _table(block: Table) -> str:
    rows = block._tbl.tr_lst[:_MAX_ROWS]  # noqa: SLF001 - `rows` repeats a cell for each column that it spans
    return table([[_Cell(each, block).text for each in row.tc_lst[:_MAX_COLUMNS]] for row in rows])
