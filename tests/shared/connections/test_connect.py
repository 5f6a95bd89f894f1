"""What is said when Redis is not what it should be."""

from __future__ import annotations

import pytest
from kombu.exceptions import OperationalError
from redis import Connection, exceptions
from redis.sentinel import MasterNotFoundError

from shared.connections.connect import WholeCommands, reachable
from shared.errors import NotRunningError, RamifyError
from shared.settings import Settings

URL = "redis://:pass-word@127.0.0.1:6399/0"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (exceptions.ConnectionError("refused"), "does not answer"),
        (exceptions.TimeoutError("slow"), "does not answer"),
        (exceptions.AuthenticationError("WRONGPASS"), "refuses the password"),
        (exceptions.InvalidResponse("Protocol Error: b'HTTP/1.1 400 Bad Request'"), "is no Redis"),
        (exceptions.ReadOnlyError("You can't write against a read only replica."), "read-only replica"),
        (exceptions.OutOfMemoryError("command not allowed"), "out of memory"),
        (exceptions.AuthenticationError("Authentication required."), "asks for a password"),
        (
            exceptions.ResponseError("NOAUTH HELLO must be called with the client already authenticated"),
            "asks for a pass",
        ),
        (exceptions.NoPermissionError("User ramify has no permissions"), "ACL SETUSER"),
        (exceptions.BusyLoadingError("Redis is loading the dataset in memory"), "is loading its file"),
        (exceptions.MasterDownError("Link with MASTER is down"), "lost its master"),
        (exceptions.ClusterDownError("The cluster is down"), "its cluster is down"),
        (exceptions.ResponseError("CROSSSLOT Keys in request"), "node of a Redis Cluster"),
        (
            exceptions.ResponseError("MISCONF Errors writing to the AOF file"),
            "make room there",
        ),
        (
            exceptions.ResponseError("MISCONF Redis is configured to save"),
            "cannot write to its disk",
        ),
        (exceptions.ResponseError("NOREPLICAS Not enough good replicas to write."), "min-replicas-to-write"),
        (exceptions.ResponseError("BUSY Redis is busy running a script."), "script kill"),
        (exceptions.ConnectionError("max number of clients reached"), "raise its maxclients"),
        (exceptions.ConnectionError("Connection closed by server."), "client-output-buffer-limit"),
        (exceptions.MaxConnectionsError("Too many connections"), "used up its connections"),
        (
            exceptions.ConnectionError("[SSL: CERTIFICATE_VERIFY_FAILED]"),
            "ssl_ca_certs",
        ),
        (exceptions.ConnectionError("Error 1 connecting to h:1. [SSL: WRONG_VERSION_NUMBER]"), "does not speak TLS"),
        (exceptions.ResponseError("unknown command 'XAUTOCLAIM', with args beginning with:"), "6.2 or later"),
        (MasterNotFoundError("No master found for 'jobs'"), "redis.sentinel_master"),
        # As Redis 6.2 answers when it was a command of a script that was refused:
        (exceptions.ResponseError("Error running script: @user:9: -OOM command not allowed when"), "maxmemory"),
        (
            exceptions.ResponseError("Error running script: @user:9: -READONLY You can't write"),
            "read-only replica",
        ),
        (exceptions.ResponseError("Error running script: @user:9: -MISCONF Errors writing"), "takes no changes"),
    ],
)
def test_a_redis_that_cannot_be_used_is_one_sentence_with_its_place_and_no_password(
    error: Exception, sentence: str
) -> None:
    with pytest.raises(NotRunningError, match=sentence) as caught, reachable(Settings(redis={"url": URL})):
        raise error
    assert "127.0.0.1:6399" in str(caught.value)
    assert "pass-word" not in str(caught.value)


def leaves(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*(leaves(below) for below in kind.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(leaves(exceptions.RedisError), key=lambda kind: kind.__name__))
def test_every_error_of_redis_is_one_sentence(kind: type[Exception]) -> None:
    error = kind.__new__(kind)
    error.args = ("something\nthat nobody foresaw \x1b[31m" * 9,)
    with pytest.raises(RamifyError) as caught, reachable(Settings(redis={"url": URL})):
        raise error
    assert str(caught.value).startswith("Redis at 127.0.0.1:6399 ")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_an_error_of_the_broker_counts_as_the_one_that_it_came_from() -> None:
    wrapped = OperationalError("command not allowed")
    wrapped.__cause__ = exceptions.OutOfMemoryError("command not allowed")
    with pytest.raises(NotRunningError, match="out of memory"), reachable(Settings(redis={"url": URL})):
        raise wrapped


@pytest.mark.parametrize("error", [ValueError("ours"), KeyError("ours"), OSError("ours")])
def test_an_error_that_is_not_of_redis_passes(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, reachable(Settings(redis={"url": URL})):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "command",
    [
        ("PING",),
        ("SCRIPT LOAD", "return 1"),
        (b"CONFIG GET", "save"),
        ("HSET", "key", "数", 1, 2.5, b"\x00\r\n", ""),
        ("EVALSHA", "0" * 40, 1, "key", *[b"x" * 3000] * 20),
    ],
)
def test_a_command_is_what_redis_py_writes_in_one_piece(command: tuple[str | bytes | float, ...]) -> None:
    (written,) = WholeCommands().pack(*command)
    assert written == b"".join(Connection().pack_command(*command))


def test_what_has_no_text_is_refused() -> None:
    for value in (True, None):
        with pytest.raises(exceptions.DataError):
            WholeCommands().pack("SET", "key", value)
