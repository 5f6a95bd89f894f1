"""Flower: nothing but "OK" without a login, nothing at all under another name, and no secret on any page."""

from __future__ import annotations

import asyncio
import base64
import http.client
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import flower.urls
import pytest
from celery.worker.control import conf as inspect_conf
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from tornado.options import options

from orchestrator import monitor
from orchestrator.access import guesses
from orchestrator.local import commands
from orchestrator.local.state import login_file, make_folders, own_login
from shared.errors import SettingsError
from shared.settings import load_settings
from shared.tasks.app import make_app, settings_of
from tests.support.other_user import as_root, attack, open_folder

LOGIN = "ramify:s3cret"
OWN = {"Authorization": "Basic " + base64.b64encode(LOGIN.encode()).decode()}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "YQ=="}
PAGES = (
    "/", "/workers?json=1", "/worker/plan@host", "/tasks", "/broker", "/metrics", "/api/workers", "/api/tasks",
    "/api/queues/length", "/static/css/flower.css", "/login", "/logout", "/nothing", "//metrics", "/healthcheck/",
    "/healthcheck/../metrics", "/%68ealthcheck/../metrics",
)  # fmt: skip


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A guarded Flower in a thread, whose broker is not there."""
    settings = load_settings(redis={"url": "redis://:s3cret@127.0.0.1:9/0"}, flower={"hosts": ["flower.example"]})
    sockets = bind_sockets(0, "127.0.0.1")
    ended, started = asyncio.Event(), threading.Event()
    loops = []

    async def serve() -> None:
        app = make_app(settings)
        guarded = monitor.GuardedFlower(options=options, capp=app, io_loop=IOLoop.current(), **flower.urls.settings)
        server = HTTPServer(guarded)
        server.add_sockets(sockets)
        loops.append(asyncio.get_running_loop())
        started.set()
        await ended.wait()
        server.stop()
        guarded.executor.shutdown()

    options.basic_auth = [LOGIN]
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(20)
    yield sockets[0].getsockname()[1]
    loops[0].call_soon_threadsafe(ended.set)
    thread.join(20)
    options.basic_auth = []


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode(errors="replace")
    finally:
        connection.close()


def reply_of(port: int, path: str, headers: dict[str, str], address: str = "127.0.0.1") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10, source_address=(address, 0))
    try:
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        reply.read()
        return reply
    finally:
        connection.close()


@pytest.mark.parametrize("path", PAGES)
def test_given_no_login_when_any_page_is_asked_for_then_it_says_nothing(port: int, path: str) -> None:
    for headers in ({}, UPGRADE, {"Cookie": "user=x"}):
        assert ask(port, path, **headers) == (401, "Access denied.\n")


@pytest.mark.parametrize(
    "header",
    [
        "Basic", "Basic ", "Basic !", "Basic " + base64.b64encode(b"ramify:").decode(), "Bearer s3cret",
        "Basic " + base64.b64encode(b"ramify:s3cre").decode(), "Basic " + base64.b64encode(b"\xff\xfe").decode(),
        "Basic " + base64.b64encode(b"ramify:s3cret ").decode(), "Basic \xc3\xa9",
    ],
)  # fmt: skip
def test_given_a_wrong_login_when_a_page_is_asked_for_then_it_is_refused(port: int, header: str) -> None:
    assert ask(port, "/metrics", Authorization=header)[0] == 401


@pytest.mark.parametrize(
    "path", ["/api/worker/shutdown/plan@host", "/api/task/send-task/search.info", "/api/task/async-apply/plan.job"]
)
def test_given_no_login_when_something_would_be_done_then_it_is_not(port: int, path: str) -> None:
    assert ask(port, path, "POST") == (401, "Access denied.\n")
    assert ask(port, path, "POST", Origin="http://evil.example", **OWN)[0] == 403  # a page in the owner's browser


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:5555", "127.0.0.1.evil.example", "localhost.evil.example:80",
        "evil.example:127.0.0.1", "0.0.0.0:5555", "[::2]:5555", ":5555", "flower.example.",
    ],
)  # fmt: skip
def test_given_another_name_when_it_was_made_to_point_here_then_not_even_health_is_told(port: int, host: str) -> None:
    for path in ("/metrics", "/healthcheck", "/static/css/flower.css"):
        assert ask(port, path, Host=host, **OWN)[0] == 403
    assert "flower.hosts" in ask(port, "/", Host=host, **OWN)[1]


@pytest.mark.parametrize("host", ["localhost@evil.example", "localhost,evil.example", "localhost/evil.example"])
def test_given_a_host_that_is_none_when_asked_then_it_is_refused(port: int, host: str) -> None:
    assert ask(port, "/healthcheck", Host=host, **OWN)[0] == 400


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:5555", "127.0.0.1:80", "[::1]:5555", "[::1]", "flower.example", "Flower.Example:1"]
)
def test_given_its_own_names_and_a_login_when_asked_then_it_answers(port: int, host: str) -> None:
    assert ask(port, "/healthcheck", Host=host) == (200, "OK")
    assert ask(port, "/metrics", Host=host, **OWN)[0] == 200
    assert ask(port, "/", Host=host, **OWN)[0] == 200


def test_given_a_login_when_the_broker_is_shown_then_its_password_is_masked(port: int) -> None:
    found = ask(port, "/broker", **OWN)[1]
    assert "127.0.0.1:9" in found
    assert "s3cret" not in found


@pytest.mark.parametrize(
    "path", ["/", "/metrics", "/static/css/flower.css", "/api/workers", "/nothing", "/healthcheck"]
)
def test_given_any_reply_then_no_page_frames_it_and_no_browser_keeps_or_guesses_it(port: int, path: str) -> None:
    for headers in ({}, OWN, {"Host": "evil.example"}):
        reply = reply_of(port, path, headers)
        assert reply.headers["X-Frame-Options"] == "DENY"
        assert reply.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers.get_all("Cache-Control") == ["no-store"]


def test_given_many_wrong_logins_from_one_address_then_all_are_refused_for_a_while(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"Authorization": "Basic " + base64.b64encode(b"ramify:guess").decode()}
    found = [reply_of(port, "/metrics", wrong, "127.0.0.2").status for _ in range(25)]
    assert found == [401] * 20 + [429] * 5
    refused = reply_of(port, "/metrics", OWN, "127.0.0.2")
    assert (refused.status, refused.headers["Retry-After"]) == (429, "60")
    assert reply_of(port, "/metrics", {}, "127.0.0.2").status == 401  # a browser that asks for the login
    assert reply_of(port, "/metrics", OWN, "127.0.0.3").status == 200
    later = guesses.time.monotonic() + 61
    monkeypatch.setattr(guesses.time, "monotonic", lambda: later)
    assert reply_of(port, "/metrics", OWN, "127.0.0.2").status == 200


def test_given_many_addresses_then_few_are_kept_and_one_network_is_one_guesser() -> None:
    counted = guesses.Guesses()
    for number in range(5_000):
        counted.note(f"10.0.{number // 250}.{number % 250}")
    assert len(counted._windows) == 1_000
    for number in range(20):
        counted.note(f"2001:db8::{number:x}")
    assert counted.too_many("2001:db8::ffff")
    assert not counted.too_many("2001:db8:0:1::1")


def test_given_no_login_when_it_is_started_then_it_ends_with_one_sentence() -> None:
    with pytest.raises(SystemExit, match=r"a login only: set flower\.basic_auth"):
        monitor.GuardedFlower(options=SimpleNamespace(basic_auth=[]), capp=None)


@pytest.mark.parametrize("scheme", ["redis", "amqps"])
def test_given_secrets_in_settings_when_a_worker_tells_its_configuration_then_they_are_not_in_it(scheme: str) -> None:
    settings = load_settings(
        llm_base_url="http://ann:s3cret@llm.example/v1", llm_api_key="s3cret", llm_model="m",
        redis={
            "url": "redis://ann:s3cret@r.example:1/0", "result_url": "redis://ann:s3cret@c.example:1/0",
            "sentinel_password": "s3cret", "sentinel_master": "m", "sentinels": ["s.example:1"],
        },
        broker={"url": f"{scheme}://ann:s3cret@b.example:1/0"},
    )  # fmt: skip
    app = make_app(settings)
    assert settings_of(app) is settings

    told = str(inspect_conf(SimpleNamespace(app=app), with_defaults=True))
    assert "b.example" in told
    assert "s3cret" not in told
    assert "llm.example" not in told


def test_given_no_login_in_settings_then_one_is_generated_for_its_owner_alone() -> None:
    with open_folder() as folder:
        settings = load_settings(data_dir=folder / "data")
        make_folders(settings)
        login = own_login(settings)
        assert len(login) > 43
        assert login == own_login(settings)
        assert stat.S_IMODE(login_file(settings).stat().st_mode) == 0o600
        program = commands.flower("orchestrator.app", 5555, settings, {}, login)
        assert program.env == {"FLOWER_BASIC_AUTH": login}
        assert not any(login in word for word in program.argv)


@as_root
def test_given_another_local_user_when_it_wants_the_login_then_the_file_is_closed() -> None:
    with open_folder() as folder:
        settings = load_settings(data_dir=folder / "data")
        make_folders(settings)
        own_login(settings)
        for path in (settings.data_dir, login_file(settings).parent):
            path.chmod(0o755)  # as an older release or another program may have left it
        reading = "try: open(sys.argv[1]).read()\nexcept PermissionError: print('denied')"
        assert attack(reading, str(login_file(settings))) == "denied\n"


def test_given_a_flowerconfig_in_the_working_folder_when_flower_starts_then_it_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flowerconfig.py").write_text("raise SystemExit('somebody else wrote this')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["monitor"])
    seen: list[list[str]] = []
    monkeypatch.setattr(monitor.celery_command, "run", lambda: seen.append(list(monitor.sys.argv)))
    monkeypatch.setattr(monitor.command, "Flower", monitor.command.Flower)
    monitor.main(["orchestrator.app", "--port=1"])
    assert seen == [["monitor", "-A", "orchestrator.app", "flower", "--conf=/dev/null", "--port=1"]]
    before = options.as_dict()
    monitor.command.apply_options("monitor", ["--conf=/dev/null"])
    assert {**before, "conf": "/dev/null"} == options.as_dict()


def test_given_a_flower_beyond_loopback_when_it_has_no_login_of_its_own_then_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="basic_auth"):
        load_settings(flower={"host": "0.0.0.0"})  # noqa: S104
