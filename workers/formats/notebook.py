"""Jupyter notebooks: Markdown as it stands, code in fences, the text of outputs up to a few lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from importlib import import_module
from typing import Any

from workers.formats.parsed import FilePart, FormatError, Parsed, joined, tidy

_OUTPUT_CHARS = 2_000
#: Of a traceback its end, which names the error.
_TRACE_CHARS = 1_000
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TAGS = re.compile(r"<[^<>]*>")
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
    kernel = meta.get("kernelspec") if isinstance(meta, dict) else None
    language = _text(kernel.get("language")) if isinstance(kernel, dict) else ""
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
    listed = outputs if isinstance(outputs, list) else []
    parts = [_output(output) for output in listed if isinstance(output, dict)]
    text = "\n".join(filter(None, parts))
    return text if len(text) <= _OUTPUT_CHARS else f"{text[:_OUTPUT_CHARS]}\n… (output cut)"


def _output(output: dict[str, Any]) -> str:
    """What was printed, the plain form of a result or else its HTML as text, or how an error ends."""
    if output.get("output_type") in {"error", "pyerr"}:
        trace = _COLOURS.sub("", _lines(output.get("traceback")))[-_TRACE_CHARS:]
        error = ": ".join(filter(None, (_text(output.get("ename")), _text(output.get("evalue")))))
        return "\n".join(filter(None, (trace, "" if error in trace else error)))
    data = output.get("data")
    if text := _text(output.get("text")) or (_text(data.get("text/plain")) if isinstance(data, dict) else ""):
        return text
    page = _text(data.get("text/html")) if isinstance(data, dict) else _text(output.get("html"))
    return _shown(page) if page.strip() else ""


def _shown(page: str) -> str:
    try:
        # it needs the extra `documents`, which notebooks do without
        return str(import_module("workers.formats.html").whole_text(page))
    except (FormatError, ImportError):
        return tidy(unescape(_TAGS.sub(" ", page)))


def _fenced(text: str, language: str) -> str:
    marker = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{marker}{language}\n{text.rstrip()}\n{marker}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _lines(value: Any) -> str:
    return "\n".join(line for line in value if isinstance(line, str)) if isinstance(value, list) else _text(value)
