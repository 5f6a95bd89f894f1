"""`doctor` asks servers under the client's bounds of time and size, and repeats no secret of a key or a URL."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from orchestrator.local import checks
from orchestrator.local.checks import Check
from orchestrator.local.state import StackState
from shared.settings import Settings, load_settings

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def answering(*pieces: bytes, pause_s: float = 0.0, endless: bytes = b"") -> Iterator[tuple[str, list[bytes]]]:
    """A server that sends the pieces to each caller, then `endless` until the caller leaves; and what it was sent."""
    heard: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            with caller:
                heard.append(caller.recv(65_536))
                try:
                    for piece in pieces:
                        caller.sendall(piece)
                        stopped.wait(pause_s)
                    while endless and not stopped.is_set():
                        caller.sendall(endless)
                        stopped.wait(pause_s)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
    finally:
        stopped.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(timeout=5)


def settings(url: str, key: str = "") -> Settings:
    return load_settings(llm_model="m", llm_base_url=f"{url}/v1", llm_api_key=key)


def state(url: str) -> StackState:
    return StackState(pid=1, mark="", started_at=datetime.now(UTC), flower_url=url)


@pytest.mark.parametrize("look", ["llm", "flower"])
def test_a_byte_at_a_time_does_not_hold_it(look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "TIMEOUT_S", 0.4)
    with answering(HEAD + b"\r\n", endless=b" ", pause_s=0.1) as (url, _):
        began = time.monotonic()
        found = checks.llm(settings(url)) if look == "llm" else checks.flower(load_settings(), state(url))
        assert time.monotonic() - began < 3
    assert found.ok is False
    assert "no answer within" in found.detail


@pytest.mark.parametrize("look", ["llm", "flower"])
def test_a_reply_without_end_is_not_read_to_its_end(look: str) -> None:
    with answering(HEAD + b"\r\n", endless=b" " * 1_000_000) as (url, _):
        found: Check = checks.llm(settings(url)) if look == "llm" else checks.flower(load_settings(), state(url))
    assert "no answer" not in found.detail
    assert found.ok is False


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"data": [{"id": "' + b"m" * 5_000_000 + b'"}]}', b'{"data": 1}', b"\xff"]
)
def test_a_list_of_models_that_is_none_is_no_traceback(body: bytes) -> None:
    with answering(HEAD + b"Content-Length: %d\r\n\r\n" % len(body), body) as (url, _):
        found = checks.llm(settings(url))
    assert "it lists no models" in found.detail


def test_a_reply_packed_twice_is_not_unpacked() -> None:
    with answering(HEAD + b"Content-Encoding: gzip, gzip\r\nContent-Length: 2\r\n\r\nxx") as (url, _):
        assert checks.llm(settings(url)).ok is False


def test_a_key_that_no_header_can_hold_is_not_repeated() -> None:
    with answering(HEAD + b"Content-Length: 2\r\n\r\n{}") as (url, heard):
        found = checks.llm(settings(url, "sk-secret\nHost: evil.example"))
    assert found.ok is False
    assert "sk-secret" not in f"{found}"
    assert heard == []


def test_what_stands_in_the_url_is_sent_and_not_shown() -> None:
    with answering(HEAD + b"Content-Length: 2\r\n\r\n{}") as (url, heard):
        own = url.replace("http://", "http://user:pw-secret@")
        found = checks.llm(load_settings(llm_model="m", llm_base_url=f"{own}/v1?token=t-secret"))
    assert b"Authorization: Basic" in heard[0]
    assert b"/v1/models?token=t-secret" in heard[0]
    assert "secret" not in f"{found}"


def test_a_redirect_does_not_take_the_key_along() -> None:
    with answering(HEAD + b"Content-Length: 2\r\n\r\n{}") as (evil, heard):
        moved = f"HTTP/1.1 302 Found\r\nLocation: {evil}/v1/models\r\nContent-Length: 0\r\n\r\n".encode()
        with answering(moved) as (url, _):
            assert checks.llm(settings(url, "sk-1")).ok is False
    assert heard == []
