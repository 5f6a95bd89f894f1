"""Jupyter notebooks: Markdown as it stands, code in fences, the text of outputs up to a few lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from workers.formats.parsed import FilePart, FormatError, Parsed, joined

_OUTPUT_CHARS = 2_000
_TICKS = re.compile(r"`++")


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for what is no notebook."""
    del name
    try:
        book = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise FormatError("is no notebook: its JSON cannot be read") from None
    cells = _cells(book) if isinstance(book, dict) else None
    if cells is None:
        raise FormatError("is no notebook: it has no list of cells")
    meta = book.get("metadata")
    language = _text(((meta or {}).get("kernelspec") or {}).get("language")) if isinstance(meta, dict) else ""
    return joined(_parts(cells, "".join(char for char in language if char.isalnum())))


def _cells(book: dict[str, Any]) -> list[Any] | None:
    """Those of the notebook, before version 4 those of its worksheets."""
    if isinstance(sheets := book.get("worksheets"), list):
        of_sheets = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
        return [cell for cells in of_sheets if isinstance(cells, list) for cell in cells]
    cells = book.get("cells")
    return cells if isinstance(cells, list) else None


def _parts(cells: list[Any], language: str) -> Iterator[FilePart]:
    for number, cell in enumerate(cells, start=1):
        if not isinstance(cell, dict):
            continue
        source, place = _text(cell.get("source", cell.get("input"))), f"cell {number}"
        if cell.get("cell_type") == "markdown":
            yield FilePart(source, place)
        elif cell.get("cell_type") == "code" and source.strip():
            yield FilePart(_fenced(source, language), place)
            if shown := _outputs(cell.get("outputs")):
                yield FilePart(_fenced(shown, "text"), place)


def _outputs(outputs: Any) -> str:
    parts = []
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict):
            data = output.get("data")
            parts.append(_text(output.get("text")) or (_text(data.get("text/plain")) if isinstance(data, dict) else ""))
    text = "\n".join(filter(None, parts))
    return text if len(text) <= _OUTPUT_CHARS else f"{text[:_OUTPUT_CHARS]}\n… (output cut)"


def _fenced(text: str, language: str) -> str:
    marker = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{marker}{language}\n{text.rstrip()}\n{marker}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
