"""Metadata that came beside a document's bytes, from the program that pushed it: it counts for more than its own."""

from __future__ import annotations

from collections.abc import Sequence

from shared.models import DocumentOutcome, RawDocument
from workers.index.documents import Document
from workers.index.fields import fields_of
from workers.index.metadata import other_fields, read_metadata


def with_given(raw: RawDocument, items: Sequence[Document | DocumentOutcome]) -> Sequence[Document | DocumentOutcome]:
    """The documents of a file with the metadata of that; values that are dropped leave a note, as in front matter."""
    if not raw.metadata:
        return items
    said, fields = read_metadata(raw.metadata), fields_of(other_fields(raw.metadata), "")
    changes = {name: getattr(said, name) for name in ("title", "date", "tags", "kind", "facet")}
    changes = {name: value for name, value in changes.items() if value}

    def given(document: Document) -> Document:
        own = {"fields": tuple(dict.fromkeys((*document.fields, *fields))), "notes": (*document.notes, *said.notes)}
        return document.model_copy(update={**changes, **own})

    return [given(item) if isinstance(item, Document) else item for item in items]
