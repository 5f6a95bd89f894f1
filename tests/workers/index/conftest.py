"""An embedded store, and what indexes documents into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.providers.encoders.sparse import Bm25Encoder
from shared.settings import Settings
from shared.store import ChunkStore
from tests.fakes.stores import open_store
from workers.index import Indexer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path)


@pytest.fixture
def store(settings: Settings) -> Iterator[ChunkStore]:
    opened = open_store(settings)
    yield opened
    opened.close()


@pytest.fixture
def indexer(store: ChunkStore, settings: Settings) -> Indexer:
    return Indexer(store, Bm25Encoder, None, settings)
