"""What becomes of a batch's documents: which of them are to be written, and what is said of each. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.models import Chunk, DocumentOutcome, DocumentStatus
from workers.index.documents import Document

TWICE = "its id stands more than once in this batch: the last one counts"


@dataclass(frozen=True, slots=True)
class Change:
    """A document to write; `known` when the store has an older form of it."""

    document: Document
    content_hash: str
    chunks: tuple[Chunk, ...]
    known: bool


def last_of_each(
    read: Sequence[Document | DocumentOutcome],
) -> tuple[list[Document | DocumentOutcome], set[str]]:
    """`read` with the last document of each id only, and the ids that stood there more than once."""
    last = {item.doc_id: place for place, item in enumerate(read) if isinstance(item, Document)}
    kept = [item for place, item in enumerate(read) if not isinstance(item, Document) or last[item.doc_id] == place]
    dropped = {
        item.doc_id for place, item in enumerate(read) if isinstance(item, Document) and last[item.doc_id] > place
    }
    return kept, dropped


def outcome_of(document: Document, status: DocumentStatus, chunks: int = 0, reason: str = "") -> DocumentOutcome:
    """What became of `document`; what was left out of it is said with it."""
    said = "; ".join(part for part in (reason, *document.notes) if part)
    return DocumentOutcome(path=document.path, doc_id=document.doc_id, status=status, chunks=chunks, reason=said)


def failure_of(document: Document, reason: str) -> DocumentOutcome:
    """A document that could not be written."""
    return outcome_of(document, DocumentStatus.FAILED, reason=reason)


def written_of(change: Change) -> DocumentOutcome:
    """A document that was."""
    status = DocumentStatus.CHANGED if change.known else DocumentStatus.ADDED
    return outcome_of(change.document, status, len(change.chunks))


def noted(outcome: DocumentOutcome, note: str) -> DocumentOutcome:
    """`outcome` with one more thing to say."""
    reason = f"{outcome.reason}; {note}" if outcome.reason else note
    return outcome.model_copy(update={"reason": reason})
