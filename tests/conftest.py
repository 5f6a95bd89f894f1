"""What all tests share: a Redis of their own on a free port, settings that point at it, and a fake model server."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import redis
import typer.testing
from typer.main import get_command

from shared.settings import Settings, load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.support.redis_server import RedisServer

#: Free room below which the folders of the tests stay on disk: a store takes 100 MiB in memory, a stack twice that.
_MEMORY_BYTES = 6 << 30
_MEMORY = Path("/dev/shm")  # noqa: S108
#: Files that share a stack: one process runs all of a row, so that it starts once. Behind those that have their own.
_SHARING = (
    ("tests/acceptance/test_priority.py",),
    ("tests/acceptance/test_tenants.py",),
    ("tests/acceptance/test_time_shares.py",),
    ("tests/acceptance/test_wheel.py",),
    ("tests/acceptance/",),
    ("tests/faults/test_redis_kills.py", "tests/faults/test_scenarios.py", "tests/faults/test_worker_kills.py"),
)


def pytest_configure() -> None:
    """Put the folders of the tests into memory where there is room: a new store syncs some 60 files to disk.

    The commands are made once a process: that takes 0.05 s.
    """
    typer.testing._get_command = cache(get_command)  # type: ignore[attr-defined]
    if not _MEMORY.is_dir() or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return
    if shutil.disk_usage(_MEMORY).free >= _MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def pytest_collection_finish() -> None:
    """What is imported by now stays: a collection of garbage need not look at it again, which takes 0.3 s."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`: a file is run by one process, and so are files that share a stack."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneStack(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((row[0] for row in _SHARING if nodeid.startswith(row)), super()._split_scope(nodeid))

    return OneStack(config, log)


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside() -> None:
    """A developer's own RAMIFY_ variables must not reach the tests, nor the stacks that they start."""
    for name in list(os.environ):
        if name.startswith("RAMIFY_") and not name.startswith("RAMIFY_TEST_"):
            del os.environ[name]


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis server of this test run."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """An empty database."""
    client = redis.Redis.from_url(redis_url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def settings(redis_url: str, tmp_path: Path) -> Settings:
    return load_settings(redis={"url": redis_url}, data_dir=tmp_path)


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A server that speaks the OpenAI protocol, with scripted replies and faults."""
    with FakeOpenAI() as fake:
        yield fake
