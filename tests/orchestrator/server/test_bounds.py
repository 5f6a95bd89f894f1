"""What a client sends is bounded: by a real server on a socket, as slow clients are no matter of one process."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

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


CHUNKED = b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("head", [b"GET /healthz HTTP/1.1\r\n", b"POST /nowhere HTTP/1.1\r\n"])
def test_given_an_answered_request_when_its_body_drips_on_then_the_connection_is_closed(port: int, head: bytes):
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head + CHUNKED)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 ")
        with pytest.raises(OSError):  # noqa: PT012 - a broken pipe or a reset, by the moment
            while time.monotonic() - began < 9:
                connection.sendall(b"1\r\nx\r\n")
                time.sleep(0.1)


def test_given_an_answered_request_when_its_body_ends_then_the_connection_serves_on(port: int):
    rest = b"3\r\nabc\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert sent(port, b"GET /healthz HTTP/1.1\r\n" + CHUNKED, rest, pause_s=0.2).count(b"HTTP/1.1 200 OK") == 2


def test_given_an_answered_request_when_more_than_the_rest_comes_then_the_connection_is_closed(port: int):
    block = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n" + CHUNKED)
        with pytest.raises(OSError):  # noqa: PT012
            for _ in range(200):
                connection.sendall(block)


def health(connection: socket.socket) -> bytes:
    """A whole reply, on a connection that stays open."""
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(1 << 16)
    return answer


def test_given_connections_that_are_opened_again_and_again_when_another_asks_then_it_is_answered(
    client: redis.Redis, settings: Settings
):
    own = settings.server.model_copy(update={"connections": 10})
    with ExitStack() as stack, served(settings.model_copy(update={"server": own})) as address:
        there = ("127.0.0.1", int(address.rpartition(":")[2]))
        kept = stack.enter_context(socket.create_connection(there, timeout=10, source_address=("127.0.0.2", 0)))
        assert health(kept).startswith(b"HTTP/1.1 200 ")
        flood = [stack.enter_context(socket.create_connection(there, timeout=10)) for _ in range(40)]
        with socket.create_connection(there, timeout=10) as other:
            assert health(other).startswith(b"HTTP/1.1 200 "), "of the same address, but not idle"
        assert health(kept).startswith(b"HTTP/1.1 200 "), "its address has one connection, the other has most"
        assert sum(bool(select.select([one], [], [], 0)[0]) for one in flood) >= 30, "the oldest are closed"


def test_given_a_request_on_each_connection_when_one_more_comes_then_it_is_told_to_come_again(
    client: redis.Redis, settings: Settings
):
    own = settings.server.model_copy(update={"connections": 10, "body_timeout_s": 30})
    with ExitStack() as stack, served(settings.model_copy(update={"server": own})) as address:
        there = ("127.0.0.1", int(address.rpartition(":")[2]))
        for _ in range(10):
            slow = stack.enter_context(socket.create_connection(there, timeout=10))
            slow.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n")
            assert slow.recv(1 << 16).startswith(b"HTTP/1.1 100 "), "it waits for the body"
        with socket.create_connection(there, timeout=10) as other:
            answer = health(other)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 2" in answer.lower()


def test_given_a_length_twice_over_when_answered_then_what_follows_is_no_request(port: int):
    inner = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = b"0\r\n\r\n" + inner
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert sent(port, head % len(body) + body).count(b"HTTP/1.1 ") == 1


def test_given_a_streamed_body_when_it_drips_then_408_ends_it_and_one_that_keeps_up_is_taken(port: int):
    head = b"POST /v1/batches HTTP/1.1\r\nContent-Type: application/jsonl\r\n" + CHUNKED
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head)
        drops = 0
        while not select.select([connection], [], [], 0.15)[0]:
            connection.sendall(b"1\r\nx\r\n")
            drops += 1
            assert drops < 60
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 408 ")
    lines = [b"40\r\n" + b"x" * 63 + b"\n\r\n"] * 30
    assert sent(port, head, *lines, b"0\r\n\r\n", pause_s=0.05).startswith(b"HTTP/1.1 202 ")
