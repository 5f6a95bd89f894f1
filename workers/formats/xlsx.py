"""Excel by openpyxl, read-only: sheet by sheet, a table of rows under the sheet's first row; values, not formulas.

Below its rows stand what the charts of a sheet show, and its comments as quotes of who wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from io import BytesIO
from itertools import chain, islice
from typing import Any
from zipfile import BadZipFile, ZipFile

from lxml import etree
from openpyxl import load_workbook
from openpyxl.packaging.relationship import get_dependents, get_rels_path
from openpyxl.utils.exceptions import InvalidFileException

from workers.formats import drawings
from workers.formats.archive import checked_archive
from workers.formats.parsed import FilePart, FormatError, Parsed, about, joined, quoted, sheet_parts

_MAX_ROWS, _MAX_COLUMNS = 100_000, 200
#: Charts of a sheet, and its comments.
_MOST_CHARTS, _MOST_COMMENTS = 50, 5000
#: What the author of a comment begins with that stands for a thread: its text is for programs that know none.
_THREAD = "tc="


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a file that is no workbook."""
    del name
    checked_archive(content)
    try:
        book = load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
    except (InvalidFileException, BadZipFile, KeyError, ValueError) as error:
        raise FormatError(f"is no workbook ({type(error).__name__}): save it as .xlsx anew") from None
    notes: list[str] = []
    parts = [
        part
        for sheet in book.worksheets
        for part in chain(sheet_parts(sheet.title, _rows(sheet, notes)), _beside(book._archive, sheet))  # noqa: SLF001
    ]
    return joined(parts, notes=tuple(notes), **about(book.properties))


def _rows(sheet: object, notes: list[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """The rows that hold something with their numbers, each without its empty end."""
    sheet.reset_dimensions()  # type: ignore[attr-defined] # else each row is as wide as the file says
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):  # type: ignore[attr-defined]
        if number > _MAX_ROWS:
            notes.append(f"sheet {sheet.title}: rows after {_MAX_ROWS:,} were left out")  # type: ignore[attr-defined]
            return
        values = [_shown(value) for value in row[:_MAX_COLUMNS]]
        while values and not values[-1]:
            values.pop()
        if values:
            yield number, values


def _beside(archive: ZipFile, sheet: Any) -> Iterator[FilePart]:
    """What the charts of a sheet show, and its comments."""
    drawn = _related(archive, sheet._worksheet_path, "/drawing")  # noqa: SLF001
    charts = (chart for one in drawn for chart in _related(archive, one, "/chart"))
    for chart in islice(charts, _MOST_CHARTS):
        for text in drawings.chart(_tree(archive, chart)):
            yield FilePart(text, f"sheet {sheet.title}, chart")
    said = islice(_comments(archive, sheet._worksheet_path), _MOST_COMMENTS)  # noqa: SLF001
    yield FilePart("\n\n".join(said), f"sheet {sheet.title}, comments")


def _comments(archive: ZipFile, sheet: str) -> Iterator[str]:
    for path in _related(archive, sheet, "/comments"):
        root = _tree(archive, path)
        authors = [author.text or "" for author in root.iter("{*}author")]
        for one in root.iter("{*}comment"):
            number = int(one.get("authorId", -1))
            author = authors[number] if 0 <= number < len(authors) else ""
            if not author.startswith(_THREAD):
                yield quoted("".join(text.text or "" for text in one.iter("{*}t")), one.get("ref", ""), author)
    names = {
        one.get("id"): one.get("displayName", "")
        for path in archive.namelist()
        if path.startswith("xl/persons/")
        for one in _tree(archive, path).iter("{*}person")
    }
    for path in _related(archive, sheet, "/threadedComment"):
        for one in _tree(archive, path).iter("{*}threadedComment"):
            yield quoted(one.findtext("{*}text") or "", one.get("ref", ""), names.get(one.get("personId"), ""))


def _related(archive: ZipFile, path: str, kind: str) -> list[str]:
    """The parts that a part names as of this kind, as far as the file has them."""
    known = set(archive.namelist())
    named = get_dependents(archive, get_rels_path(path)) if get_rels_path(path) in known else ()
    return [one.target for one in named if one.Type.endswith(kind) and one.target in known]


def _tree(archive: ZipFile, path: str) -> Any:
    return etree.fromstring(archive.read(path), etree.XMLParser(resolve_entities=False, no_network=True, recover=True))


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)
