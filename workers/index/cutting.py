"""What of a document is stored, but for its dense vectors: chunks, what stands between them, hash and size. Pure."""

from __future__ import annotations

import time
from dataclasses import dataclass

from shared.language import question_language
from shared.models import Chunk
from shared.models.corpus import DocumentSize
from shared.settings.sections import ChunkingSettings
from workers.index.chunking import chunk_document
from workers.index.documents import Document, Markup
from workers.index.keywords import KeywordVectors
from workers.index.offsets import between

#: Most lines of a document: Markdown is read line by line at about 10 us and 1 kB a line.
_LINES = {Markup.MARKDOWN: 200_000, Markup.TEXT: 2_000_000, Markup.RST: 500_000}
#: Characters by which the language of a document is told.
_LANGUAGE_CHARS = 2000
#: Most chunks of a document: four times what 10 MB of prose make.
_CHUNKS = 20_000


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document, cut. `chunks` are none where it cannot be cut, and `fault` says why.

    `rests` are of each chunk what of the text follows it and no chunk holds. `vectors` are one for each chunk, or none:
    they are still to be made.
    """

    content_hash: str
    chunks: tuple[Chunk, ...]
    fault: str
    rests: tuple[tuple[tuple[int, str], ...], ...]
    size: DocumentSize
    vectors: tuple[KeywordVectors, ...] = ()


def cut(document: Document, content_hash: str, sizes: ChunkingSettings) -> CutDocument:
    """Cut a document that has this hash."""
    chunks, fault = chunks_of(document, sizes)
    rests = tuple(between(document.text, chunks)) if chunks else ()
    return CutDocument(content_hash, tuple(chunks), fault, rests, size_of(document, len(chunks)))


def chunks_of(document: Document, sizes: ChunkingSettings) -> tuple[list[Chunk], str]:
    """The chunks of a document; or none, and why: within these bounds, cutting takes seconds and some hundred MB."""
    lines, most = document.text.count("\n") + 1, _LINES.get(document.markup)
    if most is not None and lines > most:
        return [], f"has {lines} lines, more than {most}: split it"
    chunks = chunk_document(document, sizes)
    if not chunks:
        return [], "is empty: it has no text but rules and empty headings"
    if len(chunks) > _CHUNKS:
        return [], f"makes {len(chunks)} chunks, more than {_CHUNKS}: split it"
    return chunks, ""


def size_of(document: Document, chunks: int) -> DocumentSize:
    """What is kept of a document as a whole."""
    language = None if document.markup is Markup.CODE else question_language(document.text[:_LANGUAGE_CHARS])
    return DocumentSize(
        characters=len(document.text),
        chunks=chunks,
        ingested=int(time.time()),
        language=language.code if language else "",
    )
