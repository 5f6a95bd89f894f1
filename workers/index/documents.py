"""A document as it was read, its id, its hash and the root that it belongs to. Never reads or cuts one."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from shared.models import Chunk, DocumentOutcome, RawDocument
from shared.models.base import Model
from shared.models.place import LineBox
from shared.settings.sections import ChunkingSettings
from shared.tenants import DEFAULT_TENANT
from workers.index.offsets import Span, as_fields, marks_in
from workers.index.validity import superseded_of, valid_until_of

#: Grows when the readers or the chunker give other chunks for the same file, so that the next ingest renews them.
INDEX_VERSION = 13
_ID_NAMESPACE = uuid.UUID("6f1c6a0e-0d53-5c0b-9a5f-2b7f5f0f9a11")
_SEPARATOR = "\n"


class Markup(StrEnum):
    """How a document's text is to be cut."""

    MARKDOWN = "markdown"
    TEXT = "text"
    RST = "rst"
    CODE = "code"


class Document(Model):
    """One document, read. `date` is ISO or None, `source` the scope of a prune, `notes` says what was left out.

    `places` are offsets in the text at which a page, slide or range of rows begins, each with its name, and `boxes`
    those of the lines of pages.

    `identity` is what its id is made of, and `file_id` the id of the file that it is one of several documents of.
    `fields` are the entries of its fields (`shared.language.document_fields`).
    `kind` is empty where it does not say: its folder decides (`workers.index.metadata`).
    """

    doc_id: str
    path: str
    title: str
    text: str
    markup: Markup
    source: str
    identity: str = ""
    file_id: str = ""
    namespace: str = "default"
    date: str | None = None
    tags: tuple[str, ...] = ()
    kind: str = ""
    facet: str | None = None
    fields: tuple[str, ...] = ()
    places: tuple[tuple[int, str], ...] = ()
    boxes: tuple[LineBox, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, raw: RawDocument, identity: str = "", **fields: Any) -> Self:
        """The document of a file, or of the part of it with its own `identity`; `fields` say what was read of it."""
        return cls(
            doc_id=document_id(identity or raw.identity, raw.namespace, raw.tenant),
            identity=identity or raw.identity,
            file_id=file_id(raw) if identity else "",
            source=prune_scope(raw.source, raw.namespace),
            namespace=raw.namespace,
            **{"path": raw.path, **fields},
        )

    @cached_property
    def superseded(self) -> str:
        """What in it says that it is out of date."""
        return superseded_of(self.fields, self.text) if self.markup is not Markup.CODE else ""

    @cached_property
    def valid_until(self) -> str | None:
        """The day until which it says that it holds."""
        return valid_until_of(self.fields)

    def chunk(self, ordinal: int, text: str, spans: Sequence[Span], **fields: Any) -> Chunk:
        """A chunk of this document; `spans` say where it stands in that, `fields` what else differs, and its kind."""
        return Chunk(
            chunk_id=chunk_id(self.doc_id, ordinal, text),
            text=text,
            ordinal=ordinal,
            places=marks_in(spans, self.places),
            boxes=marks_in(spans, self.boxes),
            **as_fields(text, spans),
            superseded=self.superseded,
            valid_until=self.valid_until,
            **{name: getattr(self, name) for name in ("doc_id", "path", "title", "date", "tags", "namespace")},
            **fields,
        )


def file_id(raw: RawDocument) -> str:
    """The id of a file: that of its document, where it has only one."""
    return document_id(raw.identity, raw.namespace, raw.tenant)


def document_id(identity: str, namespace: str, tenant: str) -> str:
    """A UUID that stays the same over ingests. The same file in two namespaces, or of two tenants, is two documents."""
    # A UUID namespace for each tenant: no namespace and no path can spell another tenant's id.
    own = _ID_NAMESPACE if tenant == DEFAULT_TENANT else uuid.uuid5(_ID_NAMESPACE, tenant)
    return str(uuid.uuid5(own, namespace + _SEPARATOR + identity))


def chunk_id(doc_id: str, ordinal: int, text: str) -> str:
    """A UUID of place and content: an unchanged chunk keeps its id."""
    return str(uuid.uuid5(uuid.UUID(doc_id), f"{ordinal}{_SEPARATOR}{text}"))


def document_hash(document: Document, sizes: ChunkingSettings) -> str:
    """SHA-256 (hex) over what its chunks are made of: text, metadata, settings, INDEX_VERSION; not the source."""
    parts = [INDEX_VERSION, sizes.target_chars, sizes.max_chars, sizes.kinds]
    fields = document.model_dump_json(exclude={"notes", "source", "identity"})
    return hashlib.sha256(f"{json.dumps(parts, sort_keys=True)}{fields}".encode()).hexdigest()


def prune_scope(source: str, namespace: str) -> str:
    """The name under which a source is stored: a prune in one namespace must not reach into another."""
    return source if namespace == "default" else f"{namespace}:{source}"


def with_known_origin(
    read: Sequence[Document | DocumentOutcome], origins: Mapping[str, tuple[str, str]]
) -> list[Document | DocumentOutcome]:
    """`read` with each document that comes alone, or with a part of its folder, under the root it is known from.

    `origins`: doc_id -> (source, path) as stored. Else citations would change their path, and a prune of the root would
    no longer see the document.
    """
    return [_at_origin(item, origins) if isinstance(item, Document) else item for item in read]


def belongs_to(origin: str, source: str) -> bool:
    """True when `source` is the root `origin`, or a folder or file below it."""
    return source == origin or source.startswith(f"{origin.rstrip('/')}/")


def is_elsewhere(document: Document, origins: Mapping[str, tuple[str, str]]) -> bool:
    """True for one that is known from a root above its own."""
    origin = origins.get(document.doc_id)
    return origin is not None and document.source != origin[0] and belongs_to(origin[0], document.source)


def _at_origin(document: Document, origins: Mapping[str, tuple[str, str]]) -> Document:
    if not is_elsewhere(document, origins):
        return document
    source, path = origins[document.doc_id]
    return document.model_copy(update={"source": source, "path": path})
