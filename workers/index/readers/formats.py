"""Reads what is not text (PDF, office files, web pages, mail ...) by the parser's process, as Markdown."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath

from shared.models import RawDocument
from shared.models.ingest import FORMATS
from workers.formats.parsed import FormatError
from workers.formats.process import ParserProcess
from workers.index.documents import Document, Markup
from workers.index.fields import fields_of
from workers.index.readers.base import UnreadableError

#: Seconds that one file may take.
PARSE_S = 60.0


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
    yield Document.of(
        raw,
        title=" ".join(parsed.title.split())[:300] or PurePath(raw.path).stem,
        text=parsed.text,
        markup=Markup.MARKDOWN,
        date=parsed.date or None,
        fields=fields_of({}, parsed.text),
        places=parsed.places,
        notes=parsed.notes,
    )


@cache
def _parser() -> ParserProcess:
    """The one of this process."""
    made = ParserProcess(PARSE_S)
    atexit.register(made.close)
    return made
