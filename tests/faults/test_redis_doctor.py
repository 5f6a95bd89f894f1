"""What doctor says of a real Redis in trouble, and what a submit says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.local import checks_redis
from orchestrator.local.checks import Check
from orchestrator.local.redis_server import require_redis
from shared.errors import NotRunningError
from shared.settings import Settings, load_settings
from tests.support.redis_server import RedisServer
from tests.support.waiting import until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", lasting=True) as server:
        yield server


@pytest.fixture
def settings(server: RedisServer, tmp_path: Path) -> Settings:
    return load_settings(redis={"url": server.url}, data_dir=tmp_path)


def faults(settings: Settings) -> dict[str, Check]:
    return {check.name: check for check in checks_redis.redis(settings) if check.ok is False}


def test_a_redis_in_order_has_no_faults(settings: Settings) -> None:
    assert faults(settings) == {}
    require_redis(settings)


def test_a_redis_that_is_nearly_full_and_one_that_is(server: RedisServer, settings: Settings) -> None:
    with server.client() as client:
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", int(used * 1.05))
    assert "of maxmemory" in faults(settings)["redis memory"].detail
    with server.client() as client:
        client.config_set("maxmemory", used // 2)
    assert "raise maxmemory" in faults(settings)["redis memory"].fix
    with Ramify(settings) as ramify, pytest.raises(NotRunningError, match="is out of memory: raise its maxmemory"):
        ramify.submit("Is there room?")


def test_a_replica_says_whose(server: RedisServer, settings: Settings) -> None:
    with server.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
    said = faults(settings)["redis role"].detail
    assert said == "is a read-only replica of 127.0.0.1:1, to which it has lost the link"
    with Ramify(settings) as ramify, pytest.raises(NotRunningError, match="read-only replica"):
        ramify.submit("Who is the master?")


def test_a_disk_that_fails_is_said_by_all(server: RedisServer, settings: Settings) -> None:
    """A snapshot that cannot be written stops all writes, as an append-only file does; this one fails at once."""
    with server.client() as client:
        client.config_set("save", "3600 1")
        (server.folder / client.config_get("dbfilename")["dbfilename"]).mkdir()
        client.set("change", 1)
        client.bgsave()
        until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", 10)
    assert "takes no changes" in faults(settings)["redis persistence"].detail
    with Ramify(settings) as ramify, pytest.raises(NotRunningError, match="cannot write to its disk"):
        ramify.submit("Is there a disk?")


def test_while_it_loads_its_file_that_is_what_is_said(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", lasting=True) as server, server.client() as client, client.pipeline() as pipe:
        for number in range(20_000):
            pipe.set(f"key:{number}", number)
        pipe.execute()
    again = RedisServer(tmp_path / "redis", "--key-load-delay", "200", lasting=True)
    settings = load_settings(redis={"url": again.url}, data_dir=tmp_path)
    again.launch()
    try:
        with again.client() as client:
            until(lambda: said_loading(client), 10, 0.01)
            assert "is loading its file: " in faults(settings)["redis"].detail
        with pytest.raises(NotRunningError, match="is loading its file after a start"):
            require_redis(settings)
    finally:
        again.kill()


def said_loading(client: redis.Redis) -> bool:
    try:
        return bool(client.info("persistence")["loading"])
    except redis.ConnectionError:
        return False
