"""The points of an embedded store that nobody else has open, for a copy to a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qdrant_client import models

from shared.store.base import CollectionState
from shared.store.embedded import EmbeddedStore
from shared.store.points import FoundPoint, Points
from shared.store.schema import READ_BATCH, sliced
from shared.store.snapshot_file import SnapshotFile


class EmbeddedPoints(Points):
    """The store in `folder`. Raises on opening: StoreInUseError while a search worker has it."""

    live = False

    def __init__(self, folder: Path) -> None:
        self._store = EmbeddedStore(folder)

    def state(self) -> CollectionState | None:
        """The whole collection; None when nothing has been ingested."""
        return self._store.info()

    def page(self, start: str, size: int, *, vectors: bool = True) -> tuple[list[models.PointStruct], str]:
        records, following = self._store.raw_page(start, size, vectors=vectors)
        return [_point(record) for record in records], str(following or "")

    def of(self, ids: Sequence[str]) -> dict[str, models.PointStruct]:
        found = (record for some in sliced(ids, READ_BATCH) for record in self._store.raw(some))
        return {str(record.id): _point(record) for record in found}

    def count(self, flt: models.Filter | None = None) -> int:
        return self._store.count(flt)

    def count_values(self, field: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for _, payload in self._store.read(None, (field,)):
            value = str(payload.get(field))
            found[value] = found.get(value, 0) + 1
        return found

    def nearest(self, requests: Sequence[models.QueryRequest]) -> list[list[FoundPoint]]:
        return [[FoundPoint(hit.chunk_id, hit.score) for hit in hits] for hits in self._store.query(requests)]

    def version(self) -> int:
        state = self._store.info()
        return state.index_version if state else 0

    def snapshot(self, to: Path) -> SnapshotFile:
        """Write the whole store into a file. Raises: StoreError, InputError."""
        return self._store.snapshot(to)

    def close(self) -> None:
        """Release the store."""
        self._store.close()


def _point(record: Any) -> models.PointStruct:
    vectors = {name: _vector(given) for name, given in (record.vector or {}).items()}
    return models.PointStruct(id=str(record.id), vector=vectors, payload=record.payload or {})


def _vector(given: Any) -> Any:
    if hasattr(given, "indices"):
        return models.SparseVector(indices=list(given.indices), values=list(given.values))
    return [float(number) for number in given]
