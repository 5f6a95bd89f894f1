"""The embedded Redis: other local users get nothing from it, and nobody gets code into it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import redis

from orchestrator.cli.render.system import setting_rows
from orchestrator.local import checks
from orchestrator.local.checks_redis import read_info
from orchestrator.local.redis_server import RedisServer
from orchestrator.local.state import StackState, connection, make_folders, read_private, with_redis_url, write_state
from shared.connections.process import identity
from shared.errors import NotRunningError
from shared.settings import Settings, load_settings
from tests.support.other_user import as_root, attack, open_folder
from tests.support.redis_server import redis_binary

_COMMANDS = """
for command in sys.argv[2:]:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5) as server:
        server.sendall(command.encode() + b"\\r\\n")
        print(server.recv(200).decode().split()[0], end=" ")
"""
_READING = """
for name in sys.argv[1:]:
    try:
        pathlib.Path(name).read_bytes()
        print("read", name)
    except PermissionError:
        print("denied", end=" ")
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with open_folder() as found:
        yield found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[RedisServer]:
    """As `ramify up` starts it, in a folder below one that every user may enter."""
    redis_binary()
    settings = load_settings(data_dir=folder / "data")
    make_folders(settings)
    found = RedisServer(settings)
    found.start()
    write_state(settings, state(found))
    yield found
    found.stop()


def state(server: RedisServer, **changes: str) -> StackState:
    own = {"pid": os.getpid(), "mark": identity(os.getpid()) or "", "started_at": datetime.now(UTC)}
    return StackState.model_validate(
        own | {"redis_url": server.address, "redis_password_file": str(server.password_file)} | changes
    )


@pytest.fixture
def settings(folder: Path) -> Settings:
    return load_settings(data_dir=folder / "data")


@as_root
def test_given_another_local_user_when_it_asks_the_server_then_it_gets_no_answer(server: RedisServer) -> None:
    commands = ("PING", "INFO", "MODULE LOAD /tmp/x.so", "CONFIG SET dir /tmp", "DEBUG SLEEP 0", "ACL LIST")
    replies = attack(_COMMANDS, str(server.port), *commands).split()
    assert replies == ["-NOAUTH", "-NOAUTH", "-ERR", "-ERR", "-ERR", "-ERR"]


@as_root
def test_given_another_local_user_when_it_reads_our_files_then_all_are_denied(
    server: RedisServer, settings: Settings
) -> None:
    of_redis, run = server.password_file.parent, settings.data_dir / "run"
    names = (server.password_file, of_redis / "redis.conf", of_redis / "appendonly.aof", run / "stack.json")
    environment = Path("/proc", str(server.child.pid), "environ")
    assert attack(_READING, *map(str, (*names, environment))).split() == ["denied"] * 5


def test_given_folders_that_others_may_enter_then_the_secrets_are_their_owners_alone(
    server: RedisServer, settings: Settings
) -> None:
    of_redis = server.password_file.parent
    for path in (server.password_file, of_redis / "redis.conf", settings.data_dir / "run" / "stack.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "command",
    [
        ("MODULE", "LIST"), ("MODULE", "LOAD", "/tmp/x.so"),  # noqa: S108
        ("CONFIG", "SET", "dir", "/tmp"), ("CONFIG", "SET", "dbfilename", "x.so"), ("CONFIG", "GET", "requirepass"),  # noqa: S108
        ("DEBUG", "SLEEP", "0"), ("REPLICAOF", "127.0.0.1", "1"), ("SLAVEOF", "127.0.0.1", "1"),
        ("MIGRATE", "127.0.0.1", "1", "k", "0", "10"), ("ACL", "SETUSER", "x", "on", "nopass"), ("PSYNC", "?", "-1"),
    ],
)  # fmt: skip
def test_given_the_password_when_code_would_be_loaded_then_the_command_is_not_there(
    server: RedisServer, command: tuple[str, ...]
) -> None:
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()
        for words in (command, (command[0].lower(), *command[1:])):
            with pytest.raises(redis.ResponseError, match="unknown command"):
                client.execute_command(*words)
        with pytest.raises(redis.ResponseError, match=r"nknown.*command"):
            client.eval("return redis.call(unpack(ARGV))", 0, *command)


def test_given_the_server_then_no_command_line_and_no_output_has_the_password(
    server: RedisServer, settings: Settings
) -> None:
    password = read_private(server.password_file)
    assert len(password) >= 43
    process = psutil.Process(server.child.pid)
    assert not any(password in word for word in (*process.cmdline(), *process.environ().values()))
    shown = state(server).model_dump_json() + server.address + server.child.log.read_text()
    shown += str(setting_rows(with_redis_url(settings, server.url))) + repr(connection(settings))
    assert password not in shown


def test_given_a_running_stack_when_connecting_then_the_password_is_read_from_its_file(
    server: RedisServer, settings: Settings
) -> None:
    with redis.Redis.from_url(connection(settings).redis.url.get_secret_value()) as client:
        assert client.ping()


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o604])
def test_given_a_password_file_that_others_may_touch_when_connecting_then_it_is_not_used(
    server: RedisServer, settings: Settings, mode: int
) -> None:
    loose = settings.data_dir / "loose"
    loose.write_text(server.password_file.read_text())
    loose.chmod(mode)
    write_state(settings, state(server, redis_password_file=str(loose)))
    try:
        with pytest.raises(NotRunningError, match=r"cannot be read.*as the user who started it"):
            connection(settings)
    finally:
        write_state(settings, state(server))


def test_given_a_state_that_names_a_file_outside_of_the_data_folder_then_no_redis_is_sent_its_content(
    server: RedisServer, settings: Settings, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "password"
    elsewhere.write_text(server.password_file.read_text())
    elsewhere.chmod(0o600)
    write_state(settings, state(server, redis_password_file=str(elsewhere)))
    try:
        with pytest.raises(NotRunningError, match="a password outside of"):
            connection(settings)
    finally:
        write_state(settings, state(server))


def test_given_a_link_in_place_of_the_password_then_it_is_not_followed(server: RedisServer, tmp_path: Path) -> None:
    link = tmp_path / "password"
    link.symlink_to(server.password_file)
    assert not read_private(link)


def test_given_a_stack_of_an_older_release_when_connecting_then_its_url_is_used_as_it_is(
    server: RedisServer, settings: Settings
) -> None:
    write_state(settings, state(server, redis_password_file=""))
    try:
        assert connection(settings).redis.url.get_secret_value() == server.address
    finally:
        write_state(settings, state(server))


def test_given_a_second_start_when_clients_lived_on_then_they_have_the_same_password(
    server: RedisServer, settings: Settings
) -> None:
    assert read_private(server.password_file) in RedisServer(settings).url


@pytest.mark.parametrize(
    ("info", "needed"),
    [
        ({"redis_version": "6.2.14"}, "6.2.24"),
        ({"redis_version": "7.2.4", "valkey_version": "8.1.0"}, "8.1.10"),
        ({"redis_version": "7.0.15"}, "no more"),
        ({"redis_version": "8.10.2"}, None),
        ({"redis_version": "x\x1b[2J"}, None),
        ({}, None),
    ],
)
def test_given_a_server_when_doctor_looks_then_it_warns_of_missing_fixes_with_the_command(
    info: dict[str, str], needed: str | None
) -> None:
    found = [check for check in read_info(info) if check.name == "redis fixes"]
    assert [check.ok for check in found] == ([None] if needed else [])
    assert not needed or (needed in found[0].detail and "apt install" in found[0].fix)


def test_given_no_stack_when_doctor_looks_then_the_binary_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.redis_binary, "find_binary", lambda: Path("/redis-server"))
    monkeypatch.setattr(checks.redis_binary, "version", lambda _: ("Redis", (6, 2, 14)))
    assert "redis fixes" in {check.name for check in checks.machine(load_settings())}
    assert "redis fixes" not in {check.name for check in checks.machine(load_settings(), runs=True)}
