"""What must hold of the offsets of any document's chunks."""

from __future__ import annotations

import json
from collections.abc import Sequence

from shared.models import Chunk
from shared.store.texts import BETWEEN, packed, text_of
from workers.index.documents import Document
from workers.index.offsets import between


def assert_kept(document: Document, chunks: Sequence[Chunk]) -> None:
    """Every run of characters of a chunk stands at its offsets; chunks and rests are the whole text."""
    for chunk in chunks:
        if not chunk.spans:
            assert chunk.start is not None
            assert document.text[chunk.start : chunk.end] == chunk.text
        for at, start, length in chunk.spans:
            assert document.text[start : start + length] == chunk.text[at : at + length]
        for line in (line for line in chunk.text.split("\n") if line.strip("`~ ")):
            first = chunk.text.index(line)
            found = [document.text[start:end] for start, end in chunk.in_document(first, first + len(line))]
            assert "".join(found) == line
    rests = [{BETWEEN: json.loads(json.dumps(packed(rest)))} for rest in between(document.text, chunks)]
    assert text_of(chunks, rests) == document.text
