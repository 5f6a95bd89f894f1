"""What the store knows that directories are described by: documents, how they begin, abstracts. Never writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qdrant_client import models

from shared.models import Chunk, Hit
from shared.models.hits import Part
from shared.store import ChunkStore
from shared.store.directories import dirs_namespace, dirs_source
from shared.store.filters import equals, of_source, one_of
from shared.store.schema import DOCUMENT_FIELDS, hashes_of, sliced
from workers.index.directories.extract import lead_of
from workers.index.directories.tree import Entry

_ENTRY_FIELDS = ("doc_id", "document_hash", "path", "title", "kind")
#: Documents whose beginnings are read with one call.
_PAGE = 500


def entries(store: ChunkStore, namespace: str) -> Iterator[Entry]:
    """Every document of the namespace."""
    flt = models.Filter(must=[equals("namespace", namespace), equals("ordinal", 0)])
    for _, payload in store.read(flt, _ENTRY_FIELDS):
        yield Entry(*(payload[name] for name in _ENTRY_FIELDS))


def stored_nodes(store: ChunkStore, namespace: str) -> tuple[dict[str, str], set[str]]:
    """The digests of the namespace's whole nodes by doc_id, and the doc_ids of all, torn ones too."""
    payloads = [payload for _, payload in store.read(of_source(dirs_source(namespace)), DOCUMENT_FIELDS)]
    return hashes_of(payloads), {payload["doc_id"] for payload in payloads}


def leads(store: ChunkStore, doc_ids: Sequence[str]) -> dict[str, str]:
    """How documents begin: by their compiled truth where they have one, else by their first chunk."""
    found: dict[str, Hit] = {}
    for some in sliced(list(doc_ids), _PAGE):
        first = models.Filter(should=[equals("ordinal", 0), equals("part", Part.TRUTH.value)])
        for hit in _all(store, models.Filter(must=[one_of("doc_id", some), first])):
            known = found.get(hit.doc_id)
            if known is None or _rank(hit) < _rank(known):
                found[hit.doc_id] = hit
    return {doc_id: lead_of(hit) for doc_id, hit in found.items()}


def abstracts(store: ChunkStore, namespace: str, paths: Sequence[str]) -> dict[str, str]:
    """The stored abstracts of these directories, by path."""
    found: dict[str, str] = {}
    own = [equals("namespace", dirs_namespace(namespace)), equals("part", Part.ABSTRACT.value)]
    for some in sliced(list(paths), _PAGE):
        found |= {hit.path: hit.text for hit in _all(store, models.Filter(must=[*own, one_of("path", some)]))}
    return found


def _all(store: ChunkStore, flt: models.Filter) -> Iterator[Hit]:
    return (hit for page in store.scroll(flt) for hit in page)


def _rank(chunk: Chunk) -> tuple[bool, int]:
    return chunk.part is not Part.TRUTH, chunk.ordinal
