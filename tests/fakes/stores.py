"""Stores for tests as production hands them out: one tenant's view, here with the right to close the whole."""

from __future__ import annotations

from pathlib import Path

from shared.settings import Settings
from shared.store import ChunkStore
from shared.store.collection import Collection
from shared.store.embedded import EmbeddedStore


class OpenedStore(ChunkStore):
    """One tenant's view of a collection that belongs to the test."""

    def __init__(self, collection: Collection, tenant: str = "default") -> None:
        super().__init__(collection, tenant)
        self.collection = collection

    def close(self) -> None:
        """Let go of the collection."""
        self.collection.close()


def embedded(folder: Path, tenant: str = "default") -> OpenedStore:
    """A view of the embedded store in `folder`."""
    return OpenedStore(EmbeddedStore(folder), tenant)


def open_store(settings: Settings, tenant: str = "default") -> OpenedStore:
    """A view of the embedded store where the settings want it."""
    return embedded(settings.data_dir / "store" / settings.store.collection, tenant)
