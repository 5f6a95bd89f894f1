"""What is done by document: the same filters, over whatever reads, deletes and sets payloads. Knows no engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from qdrant_client import models

from shared.store import schema
from shared.store.base import ChunkStore
from shared.store.schema import BACKLINK_FIELDS, DOCUMENT_FIELDS, PAGE, equals, hashes_of, one_of, recounted, sliced


class Record(Protocol):
    """A stored point as both engines give it."""

    @property
    def id(self) -> object:
        """A UUID in its canonical form, or what reads as one."""
        ...

    @property
    def payload(self) -> dict[str, Any] | None:
        """The fields that were asked for."""
        ...


class Paged(ABC):
    """Reads an engine's points page by page."""

    @abstractmethod
    def _pages(
        self, flt: models.Filter | None, size: int, fields: bool | list[str], start: str = ""
    ) -> Iterator[Iterable[Record]]:
        """Matching points in pages, ordered by id, from the id `start` on."""

    def _exists(self) -> bool:
        """False where `_pages` would fail for want of a collection."""
        return True

    def read(
        self, flt: models.Filter | None, fields: Sequence[str], start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """See ChunkStore."""
        if not self._exists():
            return
        for page in self._pages(flt, PAGE, list(fields), start):
            for record in page:
                if stop and str(record.id) >= stop:
                    return
                yield str(record.id), record.payload or {}


class ByDocument(ABC):
    """The part of a ChunkStore that knows documents."""

    @abstractmethod
    def read(
        self, flt: models.Filter | None, fields: Sequence[str], start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """See ChunkStore."""

    @abstractmethod
    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """See ChunkStore."""

    @abstractmethod
    def _delete(self, flt: models.Filter) -> None:
        """Remove all matching chunks; nothing to do while there is no collection."""

    def delete_chunks(self, doc_id: str, keep: Sequence[str]) -> None:
        """See ChunkStore."""
        self._delete(schema.stale_chunks(doc_id, keep))

    def delete_documents(self, doc_ids: Sequence[str]) -> None:
        """See ChunkStore."""
        if doc_ids:
            self._delete(schema.of_documents(doc_ids))

    def document_hashes(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """See ChunkStore."""
        if not doc_ids:
            return {}
        return hashes_of(self._documents(schema.of_documents(doc_ids)))

    def origins(self, doc_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """See ChunkStore."""
        found = self._documents(schema.of_documents(doc_ids)) if doc_ids else ()
        return {payload["doc_id"]: (payload["source"], payload["path"]) for payload in found}

    def documents(self, source: str) -> dict[str, str]:
        """See ChunkStore."""
        return {payload["doc_id"]: payload["path"] for payload in self._documents(schema.of_source(source))}

    def set_backlinks(self, counts: Mapping[str, int]) -> None:
        """See ChunkStore."""
        for doc_ids in sliced(list(counts), PAGE):
            stored = self.read(schema.of_documents(doc_ids), BACKLINK_FIELDS)
            if changes := recounted(stored, counts):
                self.set_payloads(changes)

    def _documents(self, flt: models.Filter) -> Iterator[dict[str, Any]]:
        return (payload for _, payload in self.read(flt, DOCUMENT_FIELDS))


# --- Which pieces of files a store holds whole, without reading their text: the fast way of an ingest. Knows no
# engine.

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
