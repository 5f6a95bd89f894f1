"""All chunks of all tenants in one engine. Only `shared.store` may hold a Collection; others get a ChunkStore."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qdrant_client import models

from shared.errors import StoreError
from shared.models import Hit
from shared.providers.encoders.base import SparseVector
from shared.store.base import BuiltWith, ChunkPoint, CollectionState, TenantNote
from shared.store.schema import READ_BATCH, hit_of
from shared.store.snapshot_file import SnapshotFile


class Collection(ABC):
    """What an engine does. Methods are as in ChunkStore where it has them, and raise the same."""

    @abstractmethod
    def info(self) -> CollectionState | None:
        """None when there is no collection yet."""

    @abstractmethod
    def create(self, built_with: BuiltWith) -> None:
        """Make the empty collection. Raises: StoreError when it exists."""

    @abstractmethod
    def upsert(self, points: Sequence[ChunkPoint], tenant: str) -> None:
        """Add or replace chunks by `chunk_id`, as chunks of `tenant`."""

    @abstractmethod
    def delete(self, flt: models.Filter) -> None:
        """Remove all matching chunks; nothing to do while there is no collection."""

    @abstractmethod
    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]: ...

    @abstractmethod
    def count(self, flt: models.Filter | None) -> int: ...

    @abstractmethod
    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]: ...

    @abstractmethod
    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None: ...

    @abstractmethod
    def set_sparse(self, vectors: Mapping[str, SparseVector]) -> None:
        """Replace sparse vectors by chunk id; ids that are gone are passed over."""

    @abstractmethod
    def remember(self, tenant: str, note: TenantNote) -> None:
        """Replace what is remembered of a tenant. No write: the index version stays."""

    @abstractmethod
    def flush(self) -> None: ...

    @abstractmethod
    def optimize(self) -> None: ...

    def snapshot(self, to: Path) -> SnapshotFile:
        """Write all of it into a file that can be put back; writers wait meanwhile. Raises: StoreError."""
        raise StoreError(f"{to.name} is not written here: a server makes its snapshots itself")

    @abstractmethod
    def close(self) -> None:
        """Release the collection. Safe to call twice."""

    @abstractmethod
    def _exists(self) -> bool: ...

    @abstractmethod
    def _page(
        self, flt: models.Filter | None, size: int, fields: bool | list[str], start: Any, vectors: bool = False
    ) -> tuple[Sequence[Any], Any]:
        """Up to `size` records (id, payload, vector) from the id `start` on, and the next start. Raises: StoreError."""

    def lookup(self, flt: models.Filter, limit: int, vectors: bool = False) -> list[Hit]:
        records, _ = self._page(flt, limit, True, None, vectors)
        return [hit_of(record) for record in records]

    def scroll(self, flt: models.Filter | None, batch: int = 256) -> Iterator[list[Hit]]:
        for page in self._pages(flt, batch, True):
            yield [hit_of(record) for record in page]

    def read(
        self, flt: models.Filter | None, fields: Sequence[str], start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for page in self._pages(flt, READ_BATCH, list(fields), start):
            for record in page:
                if stop and str(record.id) >= stop:
                    return
                yield str(record.id), record.payload or {}

    def _pages(
        self, flt: models.Filter | None, size: int, fields: bool | list[str], start: str = ""
    ) -> Iterator[Sequence[Any]]:
        following: Any = start or None
        more = self._exists()
        while more:
            records, following = self._page(flt, size, fields, following)
            if records:
                yield records
            more = following is not None


def nothing_ingested() -> StoreError:
    """The error of a write to a collection that does not exist yet."""
    return StoreError("nothing has been ingested yet: run `ramify ingest PATH`")
