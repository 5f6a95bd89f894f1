"""The compose file keeps the contract: every queue has one service, nothing is published beyond loopback."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
import redis
import yaml

from shared.contract import POOL_APPS, POOL_QUEUES, Queue
from shared.settings import Settings
from tests.support.redis_server import free_port, redis_binary
from tests.support.waiting import until

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]


def workers() -> dict[str, tuple[str, str]]:
    """Service -> (Celery app, queue)."""
    found = {}
    for name, service in SERVICES.items():
        command = service.get("command", [])
        if "worker" in command:
            found[name] = (command[command.index("-A") + 1], command[command.index("-Q") + 1])
    return found


def test_every_queue_of_the_contract_is_served_by_one_service_with_the_right_app() -> None:
    apps = {queue.value: POOL_APPS[pool] for pool, queues in POOL_QUEUES.items() for queue in queues}
    assert sorted(queue for _, queue in workers().values()) == sorted(queue.value for queue in Queue)
    assert {name: app for name, (app, _) in workers().items()} == {
        name: apps[queue] for name, (_, queue) in workers().items()
    }


def test_nothing_listens_beyond_loopback() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_variables_are_settings() -> None:
    names = [name for service in SERVICES.values() for name in service.get("environment", {})]
    known = {f"RAMIFY_{name.upper()}" for name in Settings.model_fields}
    assert {name.split("__")[0] for name in names if name.startswith("RAMIFY_")} <= known


def test_flower_runs_behind_its_guard_and_has_no_secret_that_it_does_not_need() -> None:
    assert SERVICES["flower"]["command"][:3] == ["python", "-m", "orchestrator.monitor"]
    assert set(SERVICES["flower"]["environment"]) == {"RAMIFY_REDIS__URL", "FLOWER_BASIC_AUTH"}
    assert ":?" in SERVICES["flower"]["environment"]["FLOWER_BASIC_AUTH"]


def test_redis_and_qdrant_want_credentials_that_every_user_must_set() -> None:
    for value in (
        SERVICES["redis"]["environment"]["REDISCLI_AUTH"],
        SERVICES["qdrant"]["environment"]["QDRANT__SERVICE__API_KEY"],
        *(SERVICES[name]["environment"]["RAMIFY_REDIS__URL"] for name in (*workers(), "cli")),
        *(SERVICES[name]["environment"]["RAMIFY_STORE__API_KEY"] for name in (*workers(), "cli")),
    ):
        assert re.search(r"\$\{[A-Z_]+:\?", value)


def test_only_those_who_need_redis_or_qdrant_can_reach_them() -> None:
    def on(network: str) -> set[str]:
        return {name for name, service in SERVICES.items() if network in service["networks"]}

    assert on("redis") == {"redis", *workers(), "flower", "cli"}
    assert on("qdrant") == {"qdrant", "search", "index"}
    assert not on("outside") & {"redis", "qdrant"}
    assert all(COMPOSE["networks"][name] == {"internal": True} for name in ("redis", "qdrant"))
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["flower"]


def test_every_service_is_bounded_and_has_no_privileges() -> None:
    for service in SERVICES.values():
        assert {"mem_limit", "cpus", "pids_limit"} <= set(service)
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_script_of_redis_starts_a_server_that_wants_the_password_and_loads_nothing(tmp_path: Path) -> None:
    """With the folders and the port of this test, since there is no container."""
    binary, port = redis_binary(), free_port()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "redis-server").symlink_to(binary)
    script = SERVICES["redis"]["command"][2].replace("$$", "$").replace("/tmp/", f"{tmp_path}/")  # noqa: S108
    script = script.replace("dir /data", f"dir {tmp_path}' 'port {port}' 'bind 127.0.0.1")
    path = f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
    with subprocess.Popen(
        ("sh", "-c", script), env={"REDISCLI_AUTH": "s3cret", "PATH": path}, stdout=subprocess.DEVNULL
    ) as process:
        try:
            client = redis.Redis(port=port, password="s3cret", socket_timeout=5)
            until(lambda: answers(client), 20, "Redis answers")
            assert b"s3cret" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
            assert stat.S_IMODE((tmp_path / "redis.conf").stat().st_mode) == 0o600
            assert client.info("memory")["maxmemory"] == 1536 << 20
            for command in ("MODULE LIST", "CONFIG GET dir", "DEBUG SLEEP 0"):
                with pytest.raises(redis.ResponseError, match="unknown command"):
                    client.execute_command(*command.split())
            client.close()
            with redis.Redis(port=port) as other, pytest.raises(redis.AuthenticationError):
                other.ping()
        finally:
            process.terminate()


def answers(client: redis.Redis) -> bool:
    with suppress(redis.RedisError):
        return bool(client.ping())
    return False
