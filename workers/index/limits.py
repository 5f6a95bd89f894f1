"""Bounds what one document may cost. Below them, cutting takes seconds and some hundred MB at worst; never cuts itself.

The bytes of a file are bounded before it is read; but a file of tiny blocks costs a hundred times what prose does.
"""

from __future__ import annotations

from shared.models import Chunk
from shared.settings.sections import Chunking
from workers.index.chunking import chunk_document
from workers.index.documents import Document, Markup

#: Markdown is read line by line at about 10 us and 1 kB a line.
_LINES = {Markup.MARKDOWN: 200_000, Markup.TEXT: 2_000_000, Markup.RST: 500_000}
#: Four times what 10 MB of prose make.
_CHUNKS = 20_000


def chunked(document: Document, sizes: Chunking) -> tuple[list[Chunk], str]:
    """The chunks of a document; or none, and why."""
    lines, most = document.text.count("\n") + 1, _LINES.get(document.markup)
    if most is not None and lines > most:
        return [], f"has {lines} lines, more than {most}: split it"
    chunks = chunk_document(document, sizes)
    if not chunks:
        return [], "is empty: it has no text but rules and empty headings"
    if len(chunks) > _CHUNKS:
        return [], f"makes {len(chunks)} chunks, more than {_CHUNKS}: split it"
    return chunks, ""
