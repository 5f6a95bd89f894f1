"""Reads what is not text (PDF, office files, web pages, mail ...) as Markdown, by a parser in a process of its own."""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import PurePath

from shared.language import derived, languages
from shared.language.subjects import thread_of
from shared.language.text import value_key
from shared.models import DocumentOutcome, RawDocument
from shared.models.ingest import BOXES, FORMATS
from shared.plugins import suffixes_of_readers
from workers.formats.parsed import NO_TEXT, FormatError, Parsed
from workers.formats.process import PLUGIN, ParserPool
from workers.index.documents import Document, Markup
from workers.index.fields import fields_of, said_at_head
from workers.index.metadata import Metadata, with_head
from workers.index.readers.base import UnreadableError, failed

#: A page without text up to this size is a part of one, such as a template: it has nothing to find.
_SMALL_PAGE = 4_000
#: What Office calls a PDF that it prints: the file's name behind its own.
_PRINTED = re.compile(r"Microsoft (?:Word|Excel|PowerPoint) - (.{1,250}?)(?:\.[a-z]{3,4})?", re.IGNORECASE)

#: Name of a format, bytes of a file and its name -> its documents. Raises: FormatError.
Parse = Callable[[str, bytes, str], Sequence[Parsed]]


def read_format(raw: RawDocument, parse: Parse | None = None) -> Iterator[Document | DocumentOutcome]:
    """One document, titled as the file says, else by its name; of a box of mail one for each message.

    `parse` None: by the processes.
    """
    if not raw.content:
        raise UnreadableError("is empty")
    try:
        found = (parse or parsers().parse)(_format_of(raw.suffix.lower()), raw.content, PurePath(raw.path).name)
    except FormatError as error:
        if len(raw.content) <= _SMALL_PAGE and str(error) == NO_TEXT:
            return
        raise UnreadableError(str(error)) from None
    documents = [parsed for parsed in found if parsed.text.strip()]
    if not documents:
        raise UnreadableError("has no text")
    parted = raw.suffix.lower() in BOXES or len(documents) > 1
    for number, parsed in enumerate(documents, 1):
        yield _document(raw, parsed, f"#{parsed.part or number}" if parted else "")
    yield from (failed(raw, parsed.unread) for parsed in found if parsed.unread)


def _format_of(suffix: str) -> str:
    """The parser of these files: a plugin's goes before our own."""
    plugin = suffixes_of_readers().get(suffix)
    return f"{PLUGIN}{plugin}" if plugin else FORMATS[suffix]


def _document(raw: RawDocument, parsed: Parsed, part: str) -> Document:
    """`part`: what is added to identity and path of the file for one of its documents."""
    (day, notes), head = _dated(parsed), with_head(Metadata(), said_at_head(parsed.text))
    return Document.of(
        raw,
        f"{raw.identity}{part}" if part else "",
        path=f"{raw.path}{part}",
        title=_title(parsed.title) or PurePath(raw.path).stem,
        text=parsed.text,
        markup=Markup.TEXT if parsed.plain else Markup.MARKDOWN,
        date=day or head.date,
        tags=head.tags,
        fields=fields_of(_fields(parsed), parsed.text),
        places=parsed.places,
        boxes=parsed.boxes,
        notes=notes,
    )


def _title(given: str) -> str:
    """What a file calls itself; "" for what programs call all theirs."""
    title = " ".join(given.split())[:300]
    if printed := _PRINTED.fullmatch(title):
        title = printed[1]
    return "" if value_key(title) in _untitled() else title


@derived
def _untitled() -> frozenset[str]:
    """The titles of files that nobody gave one."""
    return frozenset(value_key(name) for one in languages() for name in one.lists.phrases.get("untitled", ()))


def _fields(parsed: Parsed) -> Mapping[str, str]:
    """What a file says of itself; a mail's thread is the subject without the marks of replies."""
    if subject := parsed.fields.get("thread"):
        return {**parsed.fields, "thread": thread_of(subject)}
    return parsed.fields


def _dated(parsed: Parsed) -> tuple[str | None, tuple[str, ...]]:
    """The day that a file says it is of, and the notes; a day that is none is left out, and that is noted."""
    try:
        return (date.fromisoformat(parsed.date).isoformat() if parsed.date else None), parsed.notes
    except ValueError:
        return None, (*parsed.notes, "its date is no day: left out")


@cache
def parsers() -> ParserPool:
    """Those of this process."""
    made = ParserPool()
    atexit.register(made.close)
    return made
