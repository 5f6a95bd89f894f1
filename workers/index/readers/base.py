"""What a reader is. Never opens a file: the bytes are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from shared.errors import RamifyError
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from workers.index.documents import Document, document_id


class UnreadableError(RamifyError):
    """A file, or one line of it, cannot be read. The message says why and what to do; it becomes the outcome."""


class Reader(Protocol):
    """Bytes of one file to its documents."""

    def __call__(self, raw: RawDocument) -> Iterator[Document | DocumentOutcome]:
        """Documents in the order of the file; a failed outcome for a part that cannot be read.

        Raises: UnreadableError when nothing of the file can be read.
        """
        ...


def failed(raw: RawDocument, reason: str, identity: str = "") -> DocumentOutcome:
    """The outcome of a file (or the part of it with its own `identity`) that could not be read."""
    doc_id = document_id(identity or raw.identity, raw.namespace, raw.tenant)
    return DocumentOutcome(path=raw.path, doc_id=doc_id, status=DocumentStatus.FAILED, reason=reason)
