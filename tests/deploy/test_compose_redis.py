"""The Redis of the compose file, without its container: how it starts, and the backup and restore of the docs."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis

from tests.deploy.test_compose import GIVEN, ROOT, SERVICES, interpolated
from tests.support.redis_server import free_port, redis_binary
from tests.support.waiting import until


@contextmanager
def compose_redis(folder: Path) -> Iterator[tuple[redis.Redis, dict[str, str], subprocess.Popen[bytes]]]:
    """The Redis of the file on a port of this test, its data in `folder`/data: client, environment and process."""
    binary, port = redis_binary(), free_port()
    if not (tool := binary.with_name("redis-cli")).exists():
        pytest.skip("redis-cli is not installed beside redis-server")
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "bin" / "redis-server").write_text(f'#!/bin/sh\nexec {binary} "$@"\n')
    (folder / "bin" / "redis-cli").write_text(f'#!/bin/sh\nexec {tool} -p {port} "$@"\n')
    for file in (folder / "bin").iterdir():
        file.chmod(0o755)
    conf = (ROOT / "deploy" / "redis" / "redis.conf").read_text(encoding="utf-8")
    conf = conf.replace("/tmp/", f"{folder}/").replace("dir /data", f"dir {folder}/data\nport {port}\nbind 127.0.0.1")  # noqa: S108
    (folder / "redis.conf").write_text(conf)
    script = interpolated(SERVICES["redis"]["command"][2]).replace("/tmp/", f"{folder}/")  # noqa: S108
    script = script.replace("/etc/redis/", f"{folder}/")
    env = {"REDISCLI_AUTH": "s3cret", "PATH": f"{folder / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    with subprocess.Popen(("sh", "-c", script), env=env, stdout=subprocess.DEVNULL) as process:
        client = redis.Redis(port=port, password="s3cret", socket_timeout=5)
        try:
            until(lambda: answers(client), 20, "Redis answers")
            yield client, env, process
        finally:
            client.close()
            process.terminate()


def test_the_script_of_redis_starts_a_server_that_wants_the_password_and_loads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GIVEN, "REDIS_MAXMEMORY", "2gb")
    with compose_redis(tmp_path) as (client, _, process):
        assert b"s3cret" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert stat.S_IMODE((tmp_path / "password.conf").stat().st_mode) == 0o600
        info = client.info()
        assert (info["maxmemory"], info["maxmemory_policy"], info["aof_enabled"]) == (2 << 30, "noeviction", 1)
        for command in ("MODULE LIST", "CONFIG GET dir", "DEBUG SLEEP 0"):
            with pytest.raises(redis.ResponseError, match="unknown command"):
                client.execute_command(*command.split())
        port = client.connection_pool.connection_kwargs["port"]
        with redis.Redis(port=port) as other, pytest.raises(redis.AuthenticationError):
            other.ping()


def test_the_backup_of_the_docs_comes_back_in_a_redis_that_held_something_else(tmp_path: Path) -> None:
    """Its lines as they stand, without the containers."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (saved,) = re.findall(r"^\$ save='(.+)'$", page, flags=re.MULTILINE)
    restored, in_pod = re.findall(r"(?:compose run .* redis|kubectl exec -i restore --) sh -c '(.+)' < backup", page)
    assert restored == in_pod
    with compose_redis(tmp_path) as (client, env, _):
        assert client.info()["maxmemory"] == 1536 << 20
        client.set("answer", "kept")
        subprocess.run(("sh", "-c", saved), env=env, timeout=60, check=True, stdout=subprocess.DEVNULL)
        backup = (tmp_path / "data" / "dump.rdb").read_bytes()
        client.set("answer", "of later")
    with compose_redis(tmp_path) as (client, _, _):
        assert client.get("answer") == b"of later"
    restored = restored.replace("/data/", f"{tmp_path}/data/")
    subprocess.run(("sh", "-c", restored), input=backup, timeout=60, check=True)
    with compose_redis(tmp_path) as (client, env, _):
        assert (client.get("answer"), client.dbsize()) == (b"kept", 1)
        shutil.rmtree(tmp_path / "data")
        client.set("a write", "is taken although a copy of all keys could not be made")
        failing = saved.replace("seq 600", "seq 1")
        done = subprocess.run(("sh", "-c", failing), env=env, timeout=60, check=False, capture_output=True, text=True)
        assert (done.returncode, "rdb_last_bgsave_status:err" in done.stdout) == (1, True)
        client.set("another", "too")


def answers(client: redis.Redis) -> bool:
    with suppress(redis.RedisError):
        return bool(client.ping())
    return False
