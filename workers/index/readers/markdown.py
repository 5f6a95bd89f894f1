"""Reads Markdown with YAML front matter. Never renders it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from shared.models import RawDocument
from workers.index.blocks import first_title
from workers.index.documents import Document, Markup
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
    title = meta.title or first_title(body) or PurePath(raw.path).stem
    yield Document.of(raw, text=body, markup=Markup.MARKDOWN, **{**dict(meta), "title": title})
