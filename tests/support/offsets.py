"""What must hold of the offsets of any document's chunks."""

from __future__ import annotations

import json
from collections.abc import Sequence

from shared.models import Chunk
from shared.store.texts import BETWEEN, packed, text_of
from workers.index.documents import Document
from workers.index.offsets import between


def assert_kept(document: Document, chunks: Sequence[Chunk]) -> None:
    """Every line of a chunk stands at its offsets, besides what `assert_whole` says."""
    for chunk in chunks:
        for line in (line for line in chunk.text.split("\n") if line.strip("`~ ")):
            first = chunk.text.index(line)
            found = [document.text[start:end] for start, end in chunk.in_document(first, first + len(line))]
            assert "".join(found) == line
    assert_whole(document, chunks)


def assert_whole(document: Document, chunks: Sequence[Chunk]) -> None:
    """The characters at a chunk's offsets are its own; chunks and what stands between them are the whole text."""
    for chunk in chunks:
        assert chunk.start is not None
        if not chunk.spans:
            assert document.text[chunk.start : chunk.end] == chunk.text
        for at, start, length in chunk.spans:
            assert document.text[start : start + length] == chunk.text[at : at + length]
    rests = [{BETWEEN: json.loads(json.dumps(packed(rest)))} for rest in between(document.text, chunks)]
    assert text_of(chunks, rests) == document.text
