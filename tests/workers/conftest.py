"""An embedded store, as the settings of the room place it; nothing created yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared.settings import Settings
from shared.store import ChunkStore
from tests.fakes.stores import open_store


@pytest.fixture
def store(settings: Settings) -> Iterator[ChunkStore]:
    opened = open_store(settings)
    yield opened
    opened.close()
