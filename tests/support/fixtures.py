"""Fixtures that several rooms share; a room's conftest imports those that it wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from orchestrator.client import Ramify
from shared.jobs import JobStore
from shared.settings import Settings

__all__ = ["empty_folder", "ramify", "store"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder: no settings file of a developer reaches the test."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def store(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


@pytest.fixture
def ramify(client: redis.Redis, settings: Settings) -> Iterator[Ramify]:
    with Ramify(settings) as ramify:
        yield ramify
