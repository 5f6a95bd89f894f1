"""CSV and TSV by the standard library: rows below their head, so that each can be quoted with it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from io import StringIO

from workers.formats.encodings import decoded
from workers.formats.parsed import FilePart, FormatError, Parsed, joined, tables_of

_ROWS = 20
_SAMPLE = 8_000


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for what is not UTF-8 text or has no rows."""
    text = decoded(content)
    csv.field_size_limit(min(sys.maxsize, 1_000_000))
    try:
        parts = [FilePart(shown, f"rows {first}-{last}") for first, last, shown in tables_of(_rows(text, name), _ROWS)]
    except csv.Error as error:
        raise FormatError(f"cannot be read as rows ({error}): check its quotes") from None
    if not parts:
        raise FormatError("is empty")
    unclosed = text.count('"') % 2 and not name.lower().endswith(".tsv")
    note = "a quotation mark in it has no partner: rows may have run together"
    return joined(parts, notes=(note,) if unclosed else ())


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    for number, row in enumerate(csv.reader(StringIO(text), _dialect(text, name)), start=1):
        if any(value.strip() for value in row):
            yield number, row


def _dialect(text: str, name: str) -> type[csv.Dialect] | csv.Dialect:
    if name.lower().endswith(".tsv"):
        return csv.excel_tab
    try:
        return csv.Sniffer().sniff(text[:_SAMPLE], delimiters=",;\t|")
    except csv.Error:
        return csv.excel
