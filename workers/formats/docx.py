"""Word by python-docx: paragraphs, lists and tables in the order of the body, headings by their styles, notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from zipfile import BadZipFile

from docx import Document
from docx.document import Document as DocxDocument
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table
from docx.text.paragraph import Paragraph

from workers.formats.archive import checked_archive
from workers.formats.parsed import FormatError, Parsed, Part, heading, joined, table

#: Word writes the names of its own styles in English, whatever language it speaks.
_LEVEL = re.compile(r"heading ?(\d)", re.IGNORECASE)
_NUMBERING = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}numPr"


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a file that is no Word document."""
    del name
    checked_archive(content)
    try:
        document = Document(BytesIO(content))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise FormatError(f"is no Word document ({type(error).__name__}): save it as .docx anew") from None
    about = document.core_properties
    date = about.modified or about.created
    return joined(
        (Part(text) for text in _blocks(document)),
        title=(about.title or "").strip(),
        date=date.date().isoformat() if date else "",
    )


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
    rows: list[list[str]] = []
    for row in block.rows:
        cells, last = [], None
        for each in row.cells:
            if each._tc is not last:  # noqa: SLF001 - a merged cell comes once for each column that it spans
                cells.append(each.text)
            last = each._tc  # noqa: SLF001
        rows.append(cells)
    return table(rows)
