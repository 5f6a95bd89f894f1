"""Reads JSON lines, one document a line, or rows of one. Never gives up on a file for one bad line."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePath

from shared.errors import shown
from shared.models import DocumentOutcome, RawDocument
from workers.formats.parsed import FormatError
from workers.formats.structured import rows
from workers.index.documents import Document, Markup
from workers.index.fields import fields_of
from workers.index.metadata import other_fields, printable_line, read_metadata
from workers.index.readers.base import UnreadableError, clean, decode, failed

_MAX_ID, _MAX_PATH = 500, 1000
#: Lines that are looked at for what a file holds.
_SAMPLE = 50
#: What a line says beside its metadata and the fields of its document.
_OWN = frozenset({"id", "_id", "text", "path", "url"})


def read_jsonl(raw: RawDocument) -> Iterator[Document | DocumentOutcome]:
    """A document for each `{"id", "title", "text"}` line; also `date`, `tags`, `kind`, and `path` or `url`.

    A line without `id` is known by a hash of what it says. Where no line has a text, the lines are rows of one
    document. A bad line is a failed outcome with its number; blank lines are skipped.
    """
    found = False
    lines = _lines(raw.content)
    if _are_rows(lines):
        yield from _rows(raw, lines)
        return
    for number, line in enumerate(lines, start=raw.line_offset + 1):
        if not line.strip():
            continue
        found = True
        identity = ""
        try:
            fields = _object(line)
            identity = f"{raw.identity}#{_id(fields)}"
            yield _document(raw, identity, fields)
        except UnreadableError as error:
            yield failed(raw, f"line {number}: {error}", identity or f"{raw.identity}:{number}")
    if not found:
        raise UnreadableError("is empty")


def _lines(content: bytes) -> list[bytes]:
    """Lines as bytes, so that a byte that is not UTF-8 spoils its own line only."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = decode(content).encode()
    return content.removeprefix(codecs.BOM_UTF8).split(b"\n")


def _are_rows(lines: Sequence[bytes]) -> bool:
    """True where the first lines are several objects, none of which says that it is a document."""
    objects = []
    for line in islice((line for line in lines if line.strip()), _SAMPLE):
        try:
            objects.append(_object(line))
        except UnreadableError:
            return False
    return len(objects) > 1 and not any("text" in fields for fields in objects)


def _rows(raw: RawDocument, lines: Sequence[bytes]) -> Iterator[Document | DocumentOutcome]:
    values = []
    for number, line in enumerate(lines, start=raw.line_offset + 1):
        if line.strip():
            try:
                values.append(_object(line))
            except UnreadableError as error:
                yield failed(raw, f"line {number}: {error}", f"{raw.identity}:{number}")
    try:
        parsed = rows(values, raw.line_offset + 1)
    except FormatError as error:
        raise UnreadableError(str(error)) from None
    yield Document.of(
        raw,
        f"{raw.identity}:rows:{raw.line_offset}",
        path=f"{raw.path}#{raw.line_offset + 1}" if raw.line_offset else raw.path,
        title=PurePath(raw.path).stem,
        text=clean(parsed.text),
        markup=Markup.MARKDOWN,
        places=parsed.places,
    )


def _object(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(decode(line))
    except ValueError as error:
        raise UnreadableError(f"is not valid JSON: {error}") from None
    except RecursionError:
        raise UnreadableError("is nested too deep") from None
    if not isinstance(value, dict):
        raise UnreadableError(f'{shown(value)} is no object: write {{"id": ..., "title": ..., "text": ...}}')
    return value


def _id(fields: dict[str, object]) -> str:
    value = fields.get("id", fields.get("_id"))
    if value is None:
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UnreadableError(f"id: {shown(value)} cannot be used: give a text or a number")
    name = printable_line(clean(str(value)))
    if not 0 < len(name) <= _MAX_ID:
        raise UnreadableError(f"id: {shown(value)} cannot be used: give 1 to {_MAX_ID} characters")
    return name


def _document(raw: RawDocument, identity: str, fields: dict[str, object]) -> Document:
    text = fields.get("text")
    if not isinstance(text, str):
        raise UnreadableError(f"text: {shown(text)} cannot be used: give a text")
    text = clean(text)
    if not text.strip():
        raise UnreadableError("text: is empty")
    name = identity.removeprefix(f"{raw.identity}#")
    path = fields.get("path") or fields.get("url")
    meta = read_metadata(fields)
    others = {name: value for name, value in other_fields(fields).items() if name.lower() not in _OWN}
    own = {
        "path": _path(path) if isinstance(path, str) else f"{raw.path}#{name}",
        "title": meta.title or "",  # an id is no title: its words would be searched
        "fields": fields_of(others, text),
    }
    return Document.of(raw, identity, text=text, markup=Markup.MARKDOWN, **{**dict(meta), **own})


def _path(text: str) -> str:
    path = printable_line(clean(text))
    if not 0 < len(path) <= _MAX_PATH:
        raise UnreadableError(f"path: {shown(text)} cannot be used: give 1 to {_MAX_PATH} characters")
    if ".." in path.replace("\\", "/").split("/"):
        raise UnreadableError(f"path: {shown(text)} leads out of its folder: leave out the ..")
    return path
