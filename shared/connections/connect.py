"""Connects to Redis, and turns its errors into one sentence with what to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import redis
from redis import sentinel
from redis._parsers import Encoder
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from shared.connections.addresses import KEEPALIVE, Address, health_check_s
from shared.connections.mending import MendingClient
from shared.connections.redis_errors import redis_fault, unforeseen_fault
from shared.errors import NotRunningError, RamifyError, SettingsError
from shared.settings import Settings

#: Errors of a command whose connection broke: Redis may have run it.
LOST = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)
#: Seconds for which a connection that was used counts as open, and its attribute for when that was.
_FRESH_S, _USED = 1.0, "ramify_used_at"
#: All connection pools of this process, so that a dead connection of one warns the others.
_pools: WeakSet[Any] = WeakSet()
_lock = threading.Lock()


def remember(pool: Any) -> None:
    """`pool` is redis-py's ConnectionPool; it is kept no longer than its owner keeps it."""
    with _lock:
        _pools.add(pool)


def drop_idle() -> None:
    """Close the idle connections of all pools; the next use opens them anew.

    After one connection has timed out the others mostly would too, each at the cost of a timeout of its own.
    """
    with _lock:
        pools = list(_pools)
    for pool in pools:
        pool.disconnect(inuse_connections=False)


class WholeCommands:
    """Writes each command in one piece. redis-py 8 writes long ones in pieces of 6 KB, each a call of the system.

    Named by the option `command_packer` of its connections.
    """

    def __init__(self) -> None:
        untyped: Any = Encoder
        self._encode = untyped("utf-8", "strict", decode_responses=False).encode

    def pack(self, *args: Any) -> list[bytes]:
        """A command as Redis reads it; its name may be two words. Raises: DataError for what has no text."""
        name, *rest = args
        words = (name.encode() if isinstance(name, str) else name).split()
        values = [*words, *(one if isinstance(one, bytes) else self._encode(one) for one in rest)]
        pieces = [b"*%d\r\n" % len(values)]
        for value in values:
            pieces += b"$%d\r\n" % len(value), value, b"\r\n"
        return [b"".join(pieces)]


class QuickPool(redis.ConnectionPool):
    """redis-py 8's pool without what it counts and announces at each command, which nobody here reads.

    Nor does it look whether a connection was closed, or has been left with data, that has only just been used.
    """

    def get_connection(self, *_: Any, **__: Any) -> Any:
        """A connection for one command. Raises: RedisError."""
        self._checkpid()
        with self._lock:
            free = self._available_connections
            if free and free[-1].is_connected and time.monotonic() - getattr(free[-1], _USED, 0.0) < _FRESH_S:
                self._in_use_connections.add(free[-1])
                return free.pop()
        return super().get_connection()

    def release(self, connection: Any) -> None:
        """Give it back."""
        if not connection.is_connected or connection.should_reconnect() or not self.owns_connection(connection):
            super().release(connection)
            return
        setattr(connection, _USED, time.monotonic())
        with self._lock:
            if connection in self._in_use_connections:
                self._in_use_connections.remove(connection)
                self._available_connections.append(connection)


def connect(settings: Settings, *, retries: int = 2, timeout_s: float | None = None) -> redis.Redis:
    """A client with timeouts on everything; a lost connection is tried again `retries` times. Connects at first use.

    It sets keys of a wrong type aside. With `redis.sentinels` it asks them for the master, again after each lost
    connection. `timeout_s` holds for one command; None is `redis.timeout_s`.
    Raises: NotRunningError when no URL is known, SettingsError when it is no URL.
    """
    if not settings.redis.url.get_secret_value():
        raise NotRunningError("no Redis is known: start the stack with `ramify up -d`, or set redis.url")
    address = Address(settings.redis)
    seconds = settings.redis.timeout_s if timeout_s is None else timeout_s
    options: dict[str, Any] = {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "socket_keepalive": True,
        "socket_keepalive_options": dict(KEEPALIVE),
        # It sends a PING first, which a Redis that loads or cannot write refuses where it would answer INFO.
        "health_check_interval": health_check_s(settings.redis) if retries else 0,
        "retry": Retry(ExponentialWithJitterBackoff(cap=1, base=0.05), retries, LOST),
        "command_packer": WholeCommands(),
    }
    try:
        found = (
            _by_sentinel(address, options)
            if address.master
            else MendingClient.from_pool(QuickPool.from_url(address.redis_url, **options))
        )
    except (ValueError, TypeError) as error:  # TypeError: an option of the URL that no client has
        raise SettingsError("redis.url", address.label, f"{error}") from None
    remember(found.connection_pool)
    return found


class _SentinelClient(MendingClient):
    """A client of the master; closing it closes the connections to the Sentinels too."""

    sentinel: Any = None

    def close(self) -> None:
        super().close()
        if self.sentinel:
            self.sentinel.close()


def _by_sentinel(address: Address, options: dict[str, Any]) -> redis.Redis:
    untyped: Any = sentinel
    group = untyped.Sentinel(address.sentinels, sentinel_kwargs=address.sentinel_options)
    own = {name: value for name, value in address.options.items() if name not in {"host", "port"}}
    tls = {"ssl": True} if address.tls else {}
    client: _SentinelClient = group.master_for(address.master, redis_class=_SentinelClient, **options, **own, **tls)
    client.sentinel = group
    return client


def refuse_cluster(client: redis.Redis, settings: Settings) -> None:
    """Raises: NotRunningError where Redis is a node of a cluster: scripts change keys of several jobs. RedisError."""
    info: Any = client.info("cluster")
    if info.get("cluster_enabled"):
        fault = redis_fault(redis.exceptions.ClusterCrossSlotError())
        raise NotRunningError(f"Redis at {Address(settings.redis).label} {fault}")


@contextmanager
def reachable(settings: Settings) -> Iterator[None]:
    """Turns an error of Redis inside the block into one sentence.

    Raises: NotRunningError naming the address and the fix; RamifyError for an error of Redis that nobody foresaw.
    """
    try:
        yield
    except Exception as error:
        if fault := redis_fault(error):
            raise NotRunningError(f"Redis at {Address(settings.redis).label} {fault}") from None
        if isinstance(error, RedisError):
            raise RamifyError(f"Redis at {Address(settings.redis).label} {unforeseen_fault(error)}") from error
        raise
