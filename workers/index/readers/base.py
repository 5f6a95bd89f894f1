"""What a reader is. Never opens a file: the bytes are given."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Protocol

from shared.errors import RamifyError, encodable
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


# --- Bytes to text. Never guesses an encoding: UTF-8, or UTF-16 that says so by its byte order mark.

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(content: bytes) -> str:
    r"""Text with `\n` line ends and without byte order mark.

    Raises: UnreadableError for another encoding and for binary files.
    """
    encoding = "utf-16" if content.startswith(_UTF16) else "utf-8-sig"
    if encoding != "utf-16" and b"\0" in content:
        raise UnreadableError("holds NUL bytes: it is no text file")
    try:
        return clean(content.decode(encoding))
    except UnicodeDecodeError as error:
        byte = content[error.start]
        name = "UTF-16" if encoding == "utf-16" else "UTF-8"
        where = f"byte 0x{byte:02X} at position {error.start}"
        raise UnreadableError(f"is not {name} ({where}): convert it to UTF-8 with iconv") from None


def clean(text: str) -> str:
    r"""`text` with `\n` line ends.

    Raises: UnreadableError for NUL and for half a surrogate pair, which JSON escapes can carry and UTF-8 cannot.
    """
    if "\0" in text:
        raise UnreadableError("holds NUL characters: it is no text")
    if not encodable(text):
        raise UnreadableError("holds half a surrogate pair: write the character itself")
    return text.replace("\r\n", "\n").replace("\r", "\n")
