"""What a reader is, and bytes to text: UTF-8, or UTF-16 with a byte order mark. Never guesses, never opens a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shared.errors import RamifyError, encodable
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from workers.formats.encodings import decoded
from workers.formats.parsed import FormatError
from workers.index.documents import Document, document_id


class UnreadableError(RamifyError):
    """A file, or one line of it, cannot be read. The message says why and what to do; it becomes the outcome."""


#: Bytes of one file -> its documents in order; a failed outcome for a part that cannot be read.
#: Raises UnreadableError when nothing of the file can be read.
Reader = Callable[[RawDocument], Iterator[Document | DocumentOutcome]]


def failed(raw: RawDocument, reason: str, identity: str = "") -> DocumentOutcome:
    """The outcome of a file (or the part of it with its own `identity`) that could not be read."""
    doc_id = document_id(identity or raw.identity, raw.namespace, raw.tenant)
    return DocumentOutcome(path=raw.path, doc_id=doc_id, status=DocumentStatus.FAILED, reason=reason)


def decode(content: bytes) -> str:
    r"""Text with `\n` line ends and without byte order mark.

    Raises: UnreadableError for another encoding and for binary files.
    """
    try:
        return clean(decoded(content))
    except FormatError as error:
        raise UnreadableError(str(error)) from None


def clean(text: str) -> str:
    r"""`text` with `\n` line ends.

    Raises: UnreadableError for NUL and for half a surrogate pair, which JSON escapes can carry and UTF-8 cannot.
    """
    if "\0" in text:
        raise UnreadableError("holds NUL characters: it is no text")
    if not encodable(text):
        raise UnreadableError("holds half a surrogate pair: write the character itself")
    return text.replace("\r\n", "\n").replace("\r", "\n")
