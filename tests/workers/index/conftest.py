"""What indexes documents into the embedded store; no Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.settings import Settings
from shared.store import ChunkStore
from workers.index.pipeline import Indexer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path)


@pytest.fixture
def indexer(store: ChunkStore, settings: Settings) -> Indexer:
    return Indexer(store, None, settings)
