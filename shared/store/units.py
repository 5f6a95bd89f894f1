"""Which pieces of files ("units") a store holds whole, without reading their text: an ingest skips those."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from qdrant_client import models

from shared.store.chunk_store import ChunkStore
from shared.store.schema import equals, one_of, sliced

#: Units of one request: bounds the filter and the answer.
_BATCH = 1000
_FIELDS = ("unit", "unit_size", "doc_id", "document_hash", "source", "path")


class UnitDocument(NamedTuple):
    """A document of a unit as it is stored."""

    doc_id: str
    source: str
    path: str


def whole_units(store: ChunkStore, keys: Sequence[str]) -> dict[str, list[UnitDocument]]:
    """The documents, by path, of each of those units of `keys` that is stored whole.

    A unit is whole when all its documents are there and none is partially written. A first chunk is written last
    (`checked`), so a document that has it lacks nothing; a chunk with another hash is of a partially written one.
    Raises: StoreError or TransientError of the store.
    """
    found: dict[str, list[UnitDocument]] = {}
    for some in sliced(list(dict.fromkeys(keys)), _BATCH):
        found |= _whole(store, some)
    return found


def _whole(store: ChunkStore, keys: Sequence[str]) -> dict[str, list[UnitDocument]]:
    stored: defaultdict[str, list[UnitDocument]] = defaultdict(list)
    sizes: dict[str, int] = {}
    hashes: dict[str, str] = {}
    for _, first in store.read(models.Filter(must=[one_of("unit", keys), equals("ordinal", 0)]), _FIELDS):
        stored[first["unit"]].append(UnitDocument(first["doc_id"], first["source"], first["path"]))
        sizes[first["unit"]] = first["unit_size"]
        hashes[first["doc_id"]] = first["document_hash"]
    incomplete: set[str] = set()  # documents that have chunks of another hash than their first chunk's
    for some in sliced(list(hashes), _BATCH):
        others = models.Filter(
            must=[one_of("doc_id", some)], must_not=[one_of("document_hash", [hashes[doc_id] for doc_id in some])]
        )
        incomplete.update(payload["doc_id"] for _, payload in store.read(others, ("doc_id",)))
    return {
        key: sorted(documents, key=lambda document: document.path)
        for key, documents in stored.items()
        if len(documents) == sizes[key] and not any(document.doc_id in incomplete for document in documents)
    }
