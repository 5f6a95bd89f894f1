"""The job store and a client on the empty Redis of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from orchestrator.client import Ramify
from shared.jobs import JobStore
from shared.settings import Settings


@pytest.fixture
def store(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


@pytest.fixture
def ramify(client: redis.Redis, settings: Settings) -> Iterator[Ramify]:
    with Ramify(settings) as ramify:
        yield ramify
