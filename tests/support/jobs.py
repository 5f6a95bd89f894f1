"""The job store and a client on the empty Redis of a test, for the conftests of the rooms that want them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from orchestrator.client import Ramify
from shared.jobs import JobStore
from shared.settings import Settings

__all__ = ["ramify", "store"]


@pytest.fixture
def store(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


@pytest.fixture
def ramify(client: redis.Redis, settings: Settings) -> Iterator[Ramify]:
    with Ramify(settings) as ramify:
        yield ramify
