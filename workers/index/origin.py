"""Where a known document belongs: one root and one path, however it is ingested later. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.models import DocumentOutcome
from workers.index.documents import Document


def with_known_origin(
    read: Sequence[Document | DocumentOutcome], origins: Mapping[str, tuple[str, str]]
) -> list[Document | DocumentOutcome]:
    """`read` with each document that comes alone, or with a part of its folder, under the root it is known from.

    `origins`: doc_id -> (source, path) as stored. Else citations would change their path, and a prune of the root would
    no longer see the document.
    """
    return [_settled(item, origins.get(item.doc_id)) if isinstance(item, Document) else item for item in read]


def belongs_to(origin: str, source: str) -> bool:
    """True when `source` is the root `origin`, or a folder or file below it."""
    return source == origin or source.startswith(f"{origin.rstrip('/')}/")


def _settled(document: Document, origin: tuple[str, str] | None) -> Document:
    if origin is None or document.source == origin[0] or not belongs_to(origin[0], document.source):
        return document
    return document.model_copy(update={"source": origin[0], "path": origin[1]})
