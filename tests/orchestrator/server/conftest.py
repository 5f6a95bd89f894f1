"""The application in this process, over the empty Redis of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from fastapi.testclient import TestClient

from orchestrator.server.app import make_app
from shared.settings import Settings
from tests.support.fixtures import ramify, store

__all__ = ["http", "ramify", "store"]


@pytest.fixture
def http(client: redis.Redis, settings: Settings) -> Iterator[TestClient]:
    with TestClient(make_app(settings), "http://localhost", raise_server_exceptions=False) as http:
        yield http
