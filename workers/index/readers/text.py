"""Reads plain text. Never looks for markup in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from shared.models import RawDocument
from workers.index.documents import Document, Markup
from workers.index.readers.base import UnreadableError
from workers.index.readers.decoding import decode


def read_text(raw: RawDocument) -> Iterator[Document]:
    """One document, titled by its file's name."""
    text = decode(raw.content)
    if not text.strip():
        raise UnreadableError("is empty")
    yield Document.of(raw, title=PurePath(raw.path).stem, text=text, markup=Markup.TEXT)
