"""Reads plain text, reStructuredText and source code. Executes no directive and parses no code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from shared.language.document_fields import LOOKED_FOR
from shared.models import RawDocument
from workers.index.code.names import path_parts
from workers.index.documents import Document, Markup
from workers.index.fields import fields_of, said_at_head
from workers.index.metadata import Metadata, with_head
from workers.index.readers.base import UnreadableError, decode
from workers.index.rst import first_heading

#: A file with a longer line was written by a program: minified, bundled, or data.
MAX_LINE = 5000


def read_text(raw: RawDocument) -> Iterator[Document]:
    """One document, titled by its file's name."""
    text = decode(raw.content)
    if not text.strip():
        raise UnreadableError("is empty")
    meta = with_head(Metadata(title=PurePath(raw.path).stem), said_at_head(text))
    yield Document.of(raw, text=text, markup=Markup.TEXT, **{**dict(meta), "fields": fields_of({}, text)})


def read_rst(raw: RawDocument) -> Iterator[Document]:
    """One document, titled by its first section heading, else by its file's name."""
    for document in read_text(raw):
        title = first_heading(document.text) or document.title
        yield document.model_copy(update={"title": title, "markup": Markup.RST})


def read_code(raw: RawDocument) -> Iterator[Document]:
    """One document, titled by its path with dots (`store.base` for `store/base.py`); of an empty file none."""
    text = decode(raw.content)
    if not text.strip():
        return  # many an __init__.py: a file like any other, with nothing to find
    number, longest = max(enumerate(text.split("\n"), start=1), key=lambda line: len(line[1]))
    if len(longest) > MAX_LINE:
        what = f"line {number} has {len(longest)} characters, more than {MAX_LINE}"
        raise UnreadableError(f"{what}: it looks minified or generated; leave it out, or ingest its source")
    parts = path_parts(raw.path)
    title = ".".join(parts[:-1] if len(parts) > 1 and parts[-1] in {"__init__", "index"} else parts)
    yield Document.of(raw, title=title, text=text, markup=Markup.CODE, fields=(LOOKED_FOR,))
