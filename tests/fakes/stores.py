"""Stores for tests as production hands them out: one tenant's view, here with the right to close the whole."""

from __future__ import annotations

from pathlib import Path

import qdrant_edge as edge

from shared.settings import Settings
from shared.store import BuiltWith, ChunkStore
from shared.store.collection import Collection
from shared.store.embedded import _SHARD, EmbeddedStore, _config, _index_missing
from shared.store.meta import StoreMeta, write_meta


class StoreInPlace(EmbeddedStore):
    """Makes its shard where it stays, and uses it as it is: one that is opened again has read 70 MB of zeros."""

    def create(self, built_with: BuiltWith) -> None:
        with self._writing:
            if self._opened() is not None:
                super().create(built_with)  # which refuses it
            (self._folder / _SHARD).mkdir(parents=True)
            self._shard = edge.EdgeShard.create(str(self._folder / _SHARD), _config(built_with))
            _index_missing(self._shard)
            self._meta = StoreMeta(built_with=built_with)
            write_meta(self._folder, self._meta)


class OpenedStore(ChunkStore):
    """One tenant's view of a collection that belongs to the test."""

    def __init__(self, collection: Collection, tenant: str = "default") -> None:
        super().__init__(collection, tenant)
        self.collection = collection

    def close(self) -> None:
        """Let go of the collection."""
        self.collection.close()


def embedded(folder: Path, tenant: str = "default") -> OpenedStore:
    """A view of the embedded store in `folder`, which is made as production makes it."""
    return OpenedStore(EmbeddedStore(folder), tenant)


def in_place(folder: Path, tenant: str = "default") -> OpenedStore:
    """The same, made sooner."""
    return OpenedStore(StoreInPlace(folder), tenant)


def open_store(settings: Settings, tenant: str = "default") -> OpenedStore:
    """A view of the embedded store where the settings want it."""
    return in_place(settings.data_dir / "store" / settings.store.collection, tenant)
