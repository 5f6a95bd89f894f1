"""Which pieces of files a store holds whole, without reading their text: the fast way of an ingest. Knows no engine.

A unit is what travels as one: a file, or a piece of a JSON Lines file. Its key is a hash of its bytes and of all that
makes chunks of them; every chunk that was made of it carries that key and the number of its documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from qdrant_client import models

from shared.store.base import ChunkStore
from shared.store.filters import equals, one_of
from shared.store.schema import sliced

#: Units of one look: bounds the filter and the answer.
_LOOK = 1000
_FIRST_FIELDS = ("unit", "unit_size", "doc_id", "document_hash", "source", "path")


class Held(NamedTuple):
    """A document of a unit as it is stored."""

    doc_id: str
    source: str
    path: str


def whole_units(store: ChunkStore, keys: Sequence[str]) -> dict[str, list[Held]]:
    """The documents, by path, of each of those units of `keys` that is stored whole.

    A unit is whole when all its documents are there and none was torn by a crash. A first chunk is written last
    (`checked`), so a document that has it lacks nothing; a chunk with another hash is what an interrupted write left.
    Raises: StoreError or TransientError of the store.
    """
    found: dict[str, list[Held]] = {}
    for some in sliced(list(dict.fromkeys(keys)), _LOOK):
        found |= _whole(store, some)
    return found


def _whole(store: ChunkStore, keys: Sequence[str]) -> dict[str, list[Held]]:
    held: defaultdict[str, list[Held]] = defaultdict(list)
    sizes: dict[str, int] = {}
    hashes: dict[str, str] = {}
    for _, first in store.read(_firsts(keys), _FIRST_FIELDS):
        held[first["unit"]].append(Held(first["doc_id"], first["source"], first["path"]))
        sizes[first["unit"]] = first["unit_size"]
        hashes[first["doc_id"]] = first["document_hash"]
    torn = _torn(store, hashes)
    return {
        key: sorted(documents, key=lambda document: document.path)
        for key, documents in held.items()
        if len(documents) == sizes[key] and not any(document.doc_id in torn for document in documents)
    }


def _torn(store: ChunkStore, hashes: dict[str, str]) -> set[str]:
    torn: set[str] = set()
    for some in sliced(list(hashes), _LOOK):
        others = models.Filter(
            must=[one_of("doc_id", some)], must_not=[one_of("document_hash", [hashes[doc_id] for doc_id in some])]
        )
        torn.update(payload["doc_id"] for _, payload in store.read(others, ("doc_id",)))
    return torn


def _firsts(keys: Sequence[str]) -> models.Filter:
    first = equals("ordinal", 0)
    return models.Filter(must=[one_of("unit", keys), first])
