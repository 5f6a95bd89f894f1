"""Documents as resources: a page of the list, the text of one from a character on, a passage in its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from mcp.types import Annotations, ListResourcesResult, Resource, ResourceTemplate
from pydantic import ValidationError

from orchestrator.client import Ramify
from orchestrator.mcp.addresses import CHUNK_TEMPLATE, DOCUMENT_TEMPLATE, document_address, read_address
from orchestrator.mcp.shortened import one_line
from shared.errors import InputError, NotFoundError
from shared.hidden import visible
from shared.models.base import Model
from shared.models.corpus import Passage, StoredDocument
from shared.settings.faults import request_fault

#: Extracted text, whatever the file was.
_TEXT = "text/plain"
_CURSOR = re.compile(r"[0-9a-f-]{36}")
#: Characters shown before and behind a passage.
_AROUND = 1_500
TEMPLATES = (
    ResourceTemplate(
        name="document",
        title="Text of a document",
        uri_template=DOCUMENT_TEMPLATE,
        description="The extracted text of a document, by its id; `start` is the character to begin at. "
        "A long text comes in parts: the last line says where the next one begins.",
        mime_type=_TEXT,
    ),
    ResourceTemplate(
        name="chunk",
        title="Passage of a document",
        uri_template=CHUNK_TEMPLATE,
        description="A passage with the text around it, by the ids of its document and chunk, as results give them.",
        mime_type=_TEXT,
    ),
)


class ReadDocument(Model):
    """What was read: text, and what is known of its document."""

    text: str
    facts: dict[str, str | int]


def page(client: Ramify, cursor: str | None, most: int) -> ListResourcesResult:
    """A page of the caller's documents. Raises: InputError for a cursor that no list has given."""
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise InputError("cursor", cursor, "give the nextCursor of the page before, or none for the first page")
    found = client.corpus.page(cursor or "", most)
    return ListResourcesResult(
        resources=[_resource(one) for one in found.documents], next_cursor=found.following or None
    )


def read(client: Ramify, address: str, most: int) -> ReadDocument:
    """The text behind an address, at most `most` characters of it.

    Raises: NotFoundError, InputError for what is not there (any more).
    """
    wanted = read_address(address)
    if wanted.chunk_id is not None:
        found = client.corpus.passage(wanted.name, chunk_id=wanted.chunk_id, around=_AROUND)
        return ReadDocument(text=visible(found.text[:most]), facts=_facts(found))
    try:
        found = client.corpus.passage(wanted.name, namespace=wanted.namespace, whole=True)
    except ValidationError as error:  # no namespace has such a name, no document so long a one
        raise NotFoundError("resource", address, f"there is no such document: {request_fault(error).fix}") from None
    if wanted.name not in {found.document.doc_id, found.document.path}:  # the corpus finds parts of names, too
        raise NotFoundError("resource", address, f"there is no such document; {found.document.path} is near")
    return _part(found, wanted.start, most)


def _part(found: Passage, start: int, most: int) -> ReadDocument:
    if start >= max(1, found.characters):
        raise InputError("start", start, f"the text has {found.characters:,} characters: give fewer, or leave it out")
    end = min(found.characters, start + most)
    text, facts = visible(found.text[start:end]), _facts(found) | {"start": start, "end": end}
    if end == found.characters:
        return ReadDocument(text=text, facts=facts)
    following = document_address(found.document.doc_id, end)
    note = f"[characters {start:,} to {end:,} of {found.characters:,}; the next part: {following}]"
    return ReadDocument(text=f"{text}\n\n{note}", facts=facts | {"next": following})


def _resource(document: StoredDocument) -> Resource:
    size = document.size
    return Resource(
        uri=document_address(document.doc_id),
        name=one_line(document.path),
        title=one_line(document.title),
        description=_described(document),
        mime_type=_TEXT,
        annotations=Annotations(last_modified=datetime.fromtimestamp(size.ingested, UTC).isoformat()) if size else None,
    )


def _described(document: StoredDocument) -> str:
    """Kind, day, tags and length, on one line."""
    parts = [document.kind, f"of {document.date}" if document.date else ""]
    parts.append(f"tags {', '.join(document.tags)}" if document.tags else "")
    parts.append(f"{document.size.characters:,} characters" if document.size else "")
    return one_line("; ".join(filter(None, parts)))


def _facts(found: Passage) -> dict[str, str | int]:
    document = found.document
    names: Sequence[tuple[str, str | int | None]] = (
        ("title", one_line(document.title)),
        ("path", one_line(document.path)),
        ("date", document.date),
        ("document", document_address(document.doc_id)),
        ("start", found.start),
        ("end", found.end),
        ("characters", found.characters),
    )
    return {name: value for name, value in names if value is not None}
