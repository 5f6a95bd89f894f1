"""Reads Markdown with YAML front matter. Never renders it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from shared.models import RawDocument
from workers.index.blocks import first_title
from workers.index.documents import Document, Markup, document_id, prune_scope
from workers.index.metadata import read_metadata
from workers.index.readers.base import UnreadableError
from workers.index.readers.decoding import decode
from workers.index.readers.front_matter import split_front_matter


def read_markdown(raw: RawDocument) -> Iterator[Document]:
    """One document. Its title is the front matter's, else the first level-1 heading, else the file's name."""
    fields, body = split_front_matter(decode(raw.content))
    if not body.strip():
        raise UnreadableError("is empty")
    meta = read_metadata(fields)
    yield Document(
        doc_id=document_id(raw.identity, raw.namespace, raw.tenant),
        path=raw.path,
        title=meta.title or first_title(body) or PurePath(raw.path).stem,
        text=body,
        markup=Markup.MARKDOWN,
        source=prune_scope(raw.source, raw.namespace),
        namespace=raw.namespace,
        date=meta.date,
        tags=meta.tags,
        kind=meta.kind,
        facet=meta.facet,
        notes=meta.notes,
    )
