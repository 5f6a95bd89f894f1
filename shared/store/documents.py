"""What is done by document: the same filters, over whatever reads, deletes and sets payloads. Knows no engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from qdrant_client import models

from shared.store import filters
from shared.store.schema import BACKLINK_FIELDS, DOCUMENT_FIELDS, PAGE, hashes_of, recounted, sliced


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
        self._delete(filters.stale_chunks(doc_id, keep))

    def delete_documents(self, doc_ids: Sequence[str]) -> None:
        """See ChunkStore."""
        if doc_ids:
            self._delete(filters.of_documents(doc_ids))

    def document_hashes(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """See ChunkStore."""
        if not doc_ids:
            return {}
        return hashes_of(self._documents(filters.of_documents(doc_ids)))

    def origins(self, doc_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """See ChunkStore."""
        found = self._documents(filters.of_documents(doc_ids)) if doc_ids else ()
        return {payload["doc_id"]: (payload["source"], payload["path"]) for payload in found}

    def documents(self, source: str) -> dict[str, str]:
        """See ChunkStore."""
        return {payload["doc_id"]: payload["path"] for payload in self._documents(filters.of_source(source))}

    def set_backlinks(self, counts: Mapping[str, int]) -> None:
        """See ChunkStore."""
        for doc_ids in sliced(list(counts), PAGE):
            stored = self.read(filters.of_documents(doc_ids), BACKLINK_FIELDS)
            if changes := recounted(stored, counts):
                self.set_payloads(changes)

    def _documents(self, flt: models.Filter) -> Iterator[dict[str, Any]]:
        return (payload for _, payload in self.read(flt, DOCUMENT_FIELDS))
