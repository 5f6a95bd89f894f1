"""OpenDocument text, sheets and slides: content.xml in its order, notes and comments below what they are on."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from defusedxml.ElementTree import ParseError, fromstring

from workers.formats.archive import checked_archive, member
from workers.formats.parsed import FilePart, FormatError, Parsed, heading, joined, sheet_parts, table, unmarked

_OFFICE, _TEXT, _TABLE, _DRAW = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("office", "text", "table", "drawing")
)
_MAX_COLUMNS, _MAX_DEPTH = 200, 100
_BLANKS = frozenset({f"{_TEXT}s", f"{_TEXT}tab", f"{_TEXT}line-break"})
_NOTE, _COMMENT = f"{_TEXT}note", f"{_OFFICE}annotation"


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for an encrypted file and one without content."""
    del name
    archive = checked_archive(content)
    if b"encryption-data" in member(archive, "META-INF/manifest.xml"):
        raise FormatError("is encrypted: save a copy without a password")
    body = _xml(member(archive, "content.xml")).find(f"{_OFFICE}body")
    if body is None or not len(body):
        raise FormatError("has no content: save it anew")
    meta = member(archive, "meta.xml")
    about = _xml(meta) if meta else body
    title, date = about.findtext(".//{*}title") or "", about.findtext(".//{*}date") or ""
    return joined(_parts(body[0]), title=title.strip(), date=date[:10])


def _parts(content: Any) -> Iterator[FilePart]:
    if content.tag == f"{_OFFICE}spreadsheet":
        for sheet in content.iter(f"{_TABLE}table"):
            yield from sheet_parts(sheet.get(f"{_TABLE}name", ""), _numbered(sheet))
    elif content.tag == f"{_OFFICE}presentation":
        for number, page in enumerate(content.iter(f"{_DRAW}page"), start=1):
            yield from (FilePart(text, f"slide {number}") for text in _blocks(page, 0))
    else:
        yield from (FilePart(text) for text in _blocks(content, 0))


def _blocks(element: Any, depth: int) -> Iterator[str]:
    for child in element:
        if child.tag == f"{_TEXT}h":
            yield heading(int(child.get(f"{_TEXT}outline-level", "1") or 1), _text(child))
        elif child.tag == f"{_TEXT}p":
            yield unmarked(_text(child))
        elif child.tag == f"{_TEXT}list":
            yield "\n".join(
                f"- {text}" for item in child.iter(f"{_TEXT}list-item") if (text := _text(item, f"{_TEXT}list"))
            )
        elif child.tag == f"{_TABLE}table":
            yield table([cells for _, cells in _numbered(child)])
        elif child.tag == _COMMENT:
            yield _comment(child)
        elif depth < _MAX_DEPTH and child.tag != f"{_TEXT}tracked-changes":
            yield from _blocks(child, depth + 1)
            continue
        yield from (_text(body) for note in child.iter(_NOTE) for body in note.iter(f"{_TEXT}note-body"))
        yield from (_comment(found) for found in child.iter(_COMMENT) if found is not child)


def _comment(comment: Any) -> str:
    """A comment as a quote of its author."""
    author, text = comment.findtext("{*}creator") or "", " ".join(map(_text, comment.iter(f"{_TEXT}p")))
    return f"> {author.strip()}: {text}".replace("> : ", "> ") if text else ""


def _numbered(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows that hold something; a cell that is repeated stands there so often."""
    number = 0
    for row in sheet.iter(f"{_TABLE}table-row"):
        number += int(row.get(f"{_TABLE}number-rows-repeated", "1") or 1)
        cells: list[str] = []
        for cell in row:
            if cell.tag in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
                times = int(cell.get(f"{_TABLE}number-columns-repeated", "1") or 1)
                cells += [_text(cell)] * min(times, _MAX_COLUMNS)
            if len(cells) > _MAX_COLUMNS:
                break
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


def _text(element: Any, *without: str) -> str:
    """All text below an element but that of its notes, its comments and what is to be left out; breaks are blanks."""
    return " ".join("".join(_pieces(element, {_NOTE, _COMMENT, *without})).split())


def _pieces(element: Any, without: Collection[str]) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in _BLANKS:
            yield " "
        elif child.tag not in without:
            yield from _pieces(child, without)
            yield " " if child.tag == f"{_TEXT}p" else ""
        yield child.tail or ""


def _xml(content: bytes) -> Any:
    try:
        return fromstring(content)
    except (ParseError, ValueError) as error:
        raise FormatError(f"its content cannot be read ({type(error).__name__}): save it anew") from None
