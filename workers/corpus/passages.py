"""A passage of a document's extracted text: of a chunk, a quote or a page, with what stands around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from shared.errors import InputError, StoreError
from shared.models import Chunk
from shared.models.corpus import Passage, PassageMark, PassageRequest, StoredDocument
from shared.models.place import Place, place_of
from shared.store import ChunkStore
from shared.store.schema import of_documents
from shared.store.texts import BETWEEN, text_of

_FIELDS = ("doc_id", "path", "title", "heading", "text", "ordinal", "start", "end", "spans", "places", "boxes")
_MAX_WORDS = 400
#: Characters that are shown of a document of which nothing is asked for, besides those around.
_BEGINNING = 300


class DocumentText(NamedTuple):
    """The chunks of a document in their order, and its text."""

    chunks: list[Chunk]
    text: str


def read_text(store: ChunkStore, doc_id: str) -> DocumentText:
    """Raises: StoreError where it is not stored whole, or was stored by an older release."""
    rows = list(store.read(of_documents([doc_id]), (*_FIELDS, BETWEEN, "document_hash")))
    if not rows or len({row["document_hash"] for _, row in rows}) > 1:
        raise StoreError("it is being ingested just now: ask again in a moment")
    chunks = [_chunk(chunk_id, row) for chunk_id, row in rows]
    text = text_of(chunks, [row for _, row in rows])
    return DocumentText(sorted(chunks, key=lambda chunk: chunk.ordinal), text)


def passage_of(read: DocumentText, document: StoredDocument, request: PassageRequest) -> Passage:
    """Raises: InputError where the document has no such chunk, quote or page."""
    marks, chunk = _marked(read, request)
    if request.whole:
        first, last = 0, len(read.text)
    elif request.page is not None and request.quote is None and request.chunk_id is None:
        first, last = _page(read, request.page)
        chunk = next((one for one in read.chunks if one.end is not None and one.end > first), None)
    else:
        begin, end = (marks[0].start, marks[-1].end) if marks else (0, _BEGINNING)
        first = _line_start(read.text, begin - request.around)
        last = _line_end(read.text, end + request.around)
    return Passage(
        document=document,
        text=read.text[first:last],
        start=first,
        end=last,
        characters=len(read.text),
        marks=tuple(marks),
        place=_place(chunk, marks[0]) if marks else _place(chunk, PassageMark(start=first, end=first)).but(box=None),
        chunk_id=chunk.chunk_id if chunk and marks else None,
    )


def _marked(read: DocumentText, request: PassageRequest) -> tuple[list[PassageMark], Chunk | None]:
    """What is asked for, as marks in the text, and the chunk that holds its beginning."""
    if request.chunk_id is not None:
        chunk = next((one for one in read.chunks if one.chunk_id == request.chunk_id), None)
        if chunk is not None:
            at = chunk.text.find(request.quote) if request.quote else -1
            spans = chunk.in_document(at, at + len(request.quote)) if request.quote and at >= 0 else chunk.in_document()
            return [PassageMark(start=start, end=end) for start, end in sorted(spans)], chunk
        if not request.quote:
            raise InputError("chunk", request.chunk_id, "the document has no such chunk (any more): leave it out")
    if request.quote:
        mark = _quoted(read, request.quote, request)
        return [mark], next((one for one in read.chunks if _holds(one, mark.start)), None)
    return [], read.chunks[0]


def _quoted(read: DocumentText, quote: str, request: PassageRequest) -> PassageMark:
    """Where a quote stands: as it is, else with other white space between its words, else in another case."""
    if request.at is not None and read.text.startswith(quote, request.at):
        return PassageMark(start=request.at, end=request.at + len(quote))
    first, last = (0, len(read.text)) if request.page is None else _page(read, request.page)
    if (at := read.text.find(quote, first, last)) >= 0:
        return PassageMark(start=at, end=at + len(quote))
    words = quote.split()
    if words and len(words) <= _MAX_WORDS:
        pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
        if found := pattern.search(read.text, first, last):
            return PassageMark(start=found.start(), end=found.end())
    raise InputError(
        "quote", quote, "the document does not say so (any more): give some words of it as they stand there"
    )


def _page(read: DocumentText, number: int) -> tuple[int, int]:
    """Where a page (or slide) begins and ends in the text."""
    begins = _places(read.chunks)
    for index, (start, name) in enumerate(begins):
        place = place_of(name)
        if number in {place.page, place.slide}:
            end = begins[index + 1][0] if index + 1 < len(begins) else len(read.text)
            blank = len(read.text[start:end]) - len(read.text[start:end].lstrip())
            return start + blank, end
    what = "it has no pages" if not begins else f"it has none of its text ({begins[0][1]} to {begins[-1][1]})"
    raise InputError("page", number, f"{what}: leave it out, or name another")


def _places(chunks: Sequence[Chunk]) -> list[tuple[int, str]]:
    """Where each page, slide or range of rows begins in the text. What stands before a chunk belongs to it."""
    found: list[tuple[int, str]] = []
    reached = 0
    for chunk in chunks:
        for at, name in chunk.places:
            if not found or found[-1][1] != name:
                starts = chunk.in_document(at, at + 1)
                found.append((reached if at == 0 or not starts else starts[0][0], name))
        reached = max(reached, chunk.end or 0)
    return found


def _place(chunk: Chunk | None, mark: PassageMark) -> Place:
    if chunk is None:
        return place_of("")
    for at, start, length in chunk.spans or ((0, chunk.start or 0, len(chunk.text)),):
        if start <= mark.start < start + length:
            first = at + mark.start - start
            return chunk.place_at(first, min(first + mark.end - mark.start, at + length))
    return chunk.place_at(0, len(chunk.text))


def _holds(chunk: Chunk, offset: int) -> bool:
    return any(start <= offset < end for start, end in chunk.in_document())


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1 if at > 0 else 0


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _chunk(chunk_id: str, row: Any) -> Chunk:
    return Chunk(chunk_id=chunk_id, **{name: row[name] for name in _FIELDS if row.get(name) is not None})
