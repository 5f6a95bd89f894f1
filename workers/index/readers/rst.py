"""Reads reStructuredText. Never executes a directive: includes are not followed."""

from __future__ import annotations

from collections.abc import Iterator

from shared.models import RawDocument
from workers.index.documents import Document, Markup
from workers.index.readers.text import read_text
from workers.index.rst import first_heading


def read_rst(raw: RawDocument) -> Iterator[Document]:
    """One document, titled by its first section heading, else by its file's name."""
    for document in read_text(raw):
        title = first_heading(document.text) or document.title
        yield document.model_copy(update={"title": title, "markup": Markup.RST})
