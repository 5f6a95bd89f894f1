"""What a client sends is bounded: by a real server on a socket, as slow clients are no matter of one process."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
import redis

from shared.settings import Settings
from tests.support.http_server import served


@pytest.fixture
def port(client: redis.Redis, settings: Settings) -> Iterator[int]:
    bounds = {"max_body_bytes": 20_000, "body_timeout_s": 0.3, "idle_timeout_s": 1}
    own = settings.server.model_copy(update=bounds)
    with served(settings.model_copy(update={"server": own})) as address:
        yield int(address.rpartition(":")[2])


def sent(port: int, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """What the server answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause_s)
        answer = b""
        while found := connection.recv(1 << 16):
            answer += found
    return answer


HEAD = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_given_a_body_that_is_too_large_when_declared_or_not_then_413_closes_the_connection(port: int):
    declared = sent(port, HEAD + b"Content-Length: 20001\r\n\r\n")
    streamed = sent(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n4e21\r\n" + b" " * 20_001 + b"\r\n")
    for answer in (declared, streamed):
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"send at most 20,000 bytes" in answer


def test_given_a_body_that_stops_when_its_time_is_over_then_408_closes_the_connection(port: int):
    began = time.monotonic()
    answer = sent(port, HEAD + b"Content-Length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in answer
    assert time.monotonic() - began < 5


def test_given_a_head_that_does_not_end_when_its_time_is_over_then_the_connection_is_closed(port: int):
    assert sent(port, b"GET /healthz HTTP/1.1\r\nHost: ") == b""
    assert sent(port) == b""
    again = sent(port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /hea", pause_s=0.2)
    assert again.count(b"HTTP/1.1 200 OK") == 1
