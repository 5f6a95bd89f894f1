"""What all tests share: a Redis of their own on a free port, and settings that point at it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from orchestrator.local.redis_server import find_binary
from shared.errors import RamifyError
from shared.settings import Settings, load_settings


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside() -> None:
    """A developer's own RAMIFY_ variables must not reach the tests, nor the stacks that they start."""
    for name in list(os.environ):
        if name.startswith("RAMIFY_") and not name.startswith("RAMIFY_TEST_"):
            del os.environ[name]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def redis_binary() -> Path:
    """Where the server is; skips the test when this machine has none."""
    try:
        return find_binary()
    except RamifyError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis server of this test run."""
    binary = redis_binary()
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    command = [str(binary), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        client = redis.Redis(port=port)
        for _ in range(100):
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.1)
        client.close()
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait(timeout=10)


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
