"""Excel by openpyxl, read-only: sheet by sheet, a table of rows under the sheet's first row; values, not formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from io import BytesIO
from zipfile import BadZipFile

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from workers.formats.archive import checked_archive
from workers.formats.parsed import FormatError, Parsed, about, joined, sheet_parts

_MAX_ROWS, _MAX_COLUMNS = 100_000, 200


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a file that is no workbook."""
    del name
    checked_archive(content)
    try:
        book = load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
    except (InvalidFileException, BadZipFile, KeyError, ValueError) as error:
        raise FormatError(f"is no workbook ({type(error).__name__}): save it as .xlsx anew") from None
    notes: list[str] = []
    parts = [part for sheet in book.worksheets for part in sheet_parts(sheet.title, _rows(sheet, notes))]
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


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)
