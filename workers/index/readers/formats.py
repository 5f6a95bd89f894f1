"""Reads what is not text (PDF, office files, web pages, mail ...) by the parser's process, as Markdown."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import PurePath

from shared.models import RawDocument
from shared.models.ingest import FORMATS
from workers.formats.parsed import FormatError, Parsed
from workers.formats.process import ParserProcess
from workers.index.documents import Document, Markup
from workers.index.fields import fields_of
from workers.index.readers.base import UnreadableError

#: Seconds that one file may take.
PARSE_S = 30.0


def read_format(raw: RawDocument) -> Iterator[Document]:
    """One document, titled as the file says, else by its name."""
    if not raw.content:
        raise UnreadableError("is empty")
    try:
        parsed = _parser().parse(FORMATS[raw.suffix.lower()], raw.content, PurePath(raw.path).name)
    except FormatError as error:
        raise UnreadableError(str(error)) from None
    if not parsed.text.strip():
        raise UnreadableError("has no text")
    day, notes = _dated(parsed)
    yield Document.of(
        raw,
        title=" ".join(parsed.title.split())[:300] or PurePath(raw.path).stem,
        text=parsed.text,
        markup=Markup.MARKDOWN,
        date=day,
        fields=fields_of({}, parsed.text),
        places=parsed.places,
        notes=notes,
    )


def _dated(parsed: Parsed) -> tuple[str | None, tuple[str, ...]]:
    """The day that a file says it is of, and the notes; a day that is none is left out, and that is noted."""
    try:
        return (date.fromisoformat(parsed.date).isoformat() if parsed.date else None), parsed.notes
    except ValueError:
        return None, (*parsed.notes, "its date is no day: left out")


@cache
def _parser() -> ParserProcess:
    """The one of this process."""
    made = ParserProcess(PARSE_S)
    atexit.register(made.close)
    return made
