"""The extracted text of a document: its chunks, and what of it stands in none of them. Nothing is stored twice. Pure.

So the text is written, replaced and removed with the chunks, under their tenant, in either engine.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.errors import StoreError
from shared.models import Chunk

#: The payload field.
BETWEEN = "between"
#: Characters from which it is compressed: between most chunks there is a heading at most.
_PACK_FROM = 400
#: Of what a document may have (`chunking.max_document_bytes`) at most this is unpacked.
_MAX_BYTES = 256 * 1024 * 1024


def packed(rest: Sequence[tuple[int, str]]) -> list[list[Any]] | str:
    """What stands between chunks as it is stored."""
    entries = [[start, text] for start, text in rest]
    if sum(len(text) for _, text in rest) < _PACK_FROM:
        return entries
    return base64.b64encode(zlib.compress(json.dumps(entries, ensure_ascii=False).encode(), 6)).decode()


def unpacked(stored: Any) -> list[tuple[int, str]]:
    """Read it back. Raises: StoreError for what Ramify has not written."""
    try:
        if isinstance(stored, str):
            stored = json.loads(zlib.decompressobj().decompress(base64.b64decode(stored), _MAX_BYTES))
        return [(int(start), str(text)) for start, text in stored or ()]
    except (ValueError, TypeError, zlib.error):
        raise StoreError("the text of a document cannot be read: ingest it again") from None


def text_of(chunks: Iterable[Chunk], rests: Iterable[Mapping[str, Any]]) -> str:
    """The document's text, of all its chunks and their payloads.

    Raises: StoreError where some of it is missing: an older release stored it, or it is being written just now.
    """
    pieces: list[tuple[int, str]] = [piece for rest in rests for piece in unpacked(rest.get(BETWEEN))]
    for chunk in chunks:
        if chunk.start is None:
            raise StoreError("its text was stored by an older release: ingest it again")
        spans = chunk.spans or ((0, chunk.start, len(chunk.text)),)
        pieces += [(start, chunk.text[at : at + length]) for at, start, length in spans]
    text: list[str] = []
    reached = 0
    for start, piece in sorted(pieces):
        if start > reached:
            raise StoreError("a part of its text is missing: it is being ingested just now, or ingest it again")
        text.append(piece[reached - start :])
        reached = max(reached, start + len(piece))
    return "".join(text)
