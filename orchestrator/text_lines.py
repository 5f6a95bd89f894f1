"""Records as text that programs and spreadsheets read: JSON without control characters, CSV without formulas. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from shared.errors import InputError
from shared.hidden import NEVER_SEEN, visible

if TYPE_CHECKING:
    from shared.models.enumeration import ListRow

#: JSON leaves these as they are, but a terminal may obey them.
_RAW = re.compile(f"[\x7f-\x9f\u2028\u2029{NEVER_SEEN}]")
#: A cell that begins so is a formula to a spreadsheet, also behind white space; or has been one, behind apostrophes.
_FORMULA = re.compile("[\\s']*[=+\\-@＝＋－＠﹦﹢﹣﹫]")
#: Columns of a CSV about lines that hold a caller's own names.
OWN_NAMES = ("id", "key")
#: What JSON escapes, and what looks as if it had been.
_ESCAPED = re.compile(r"\\(?=u[0-9a-f]{4})")
_ROW_COLUMNS = ("number", "title", "path", "uri", "date", "kind", "tags", "sentence", "copy_of")


def one_line(text: str) -> str:
    """`visible`, with white space folded to single blanks."""
    return " ".join(visible(text.replace("\r", " ")).split())


def csv_writer(stream: TextIO) -> Any:
    """A writer of rows whose cells are all quoted: no list separator of a country's spreadsheets parts one in two."""
    return csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)


def csv_cell(text: str) -> str:
    """One line for a cell of CSV; what a spreadsheet would read as a formula begins with an apostrophe."""
    return _guarded(one_line(text))


def csv_id(value: str | float) -> str:
    """A caller's own name as a cell: two that differ stay so. What has no shape is escaped; numbers are no formulas."""
    if not isinstance(value, str):
        return str(value)
    shown = _ESCAPED.sub(r"\\u005c", value)
    return _guarded("".join(c if _has_shape(c) else f"\\u{ord(c):04x}" for c in shown))


def _guarded(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def _has_shape(c: str) -> bool:
    return visible(c) == c and c not in "\n\t"


def json_text(value: Any, *, ascii_only: bool = False, indent: int | None = None) -> str:
    """`value`, a model or plain data that may hold models, as JSON without control characters; one line by default."""
    return _escaped(json.dumps(value, ensure_ascii=ascii_only, indent=indent, default=_as_json))


def _escaped(text: str) -> str:
    return _RAW.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _as_json(value: Any) -> Any:
    """What json does not know: models, and read-only mappings."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def row_lines(ending: str, rows: Iterable[ListRow], columns: Iterable[str]) -> Iterator[str]:
    """The rows of a list, line by line, as `csv` or `jsonl`; `columns` are those of its own. Raises: InputError."""
    match ending:
        case "jsonl":
            return (f"{json_text(row.model_dump(mode='json', exclude={'digest'}))}\n" for row in rows)
        case "csv":
            return _csv_rows(rows, tuple(columns))
        case _:
            raise InputError("format", ending, "csv or jsonl")


def _csv_rows(rows: Iterable[ListRow], names: tuple[str, ...]) -> Iterator[str]:
    yield csv_line([*_ROW_COLUMNS, *map(csv_cell, names)])
    for number, row in enumerate(rows, 1):
        copy_of = "" if row.copy_of is None else str(row.copy_of)
        cells = (row.title, row.path, row.uri, row.date or "", row.kind, "; ".join(row.tags), row.sentence, copy_of)
        yield csv_line([number, *map(csv_cell, cells), *(csv_cell(row.fields.get(name, "")) for name in names)])


def csv_line(cells: Iterable[object]) -> str:
    """One line of a file: no cell has a line break."""
    written = io.StringIO()
    csv_writer(written).writerow(cells)
    return written.getvalue()
