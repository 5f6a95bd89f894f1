"""Kombu's Redis transport with three patches for its recovery after a lost connection, for kombu 5.7 and redis-py 8.

Installed, as is `shared.tasks.thread_pool`, under the names that kombu and Celery have for their own (`redis`,
`threads`), so that URLs and command lines stay what their documentation says.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from celery import concurrency
from kombu.transport import TRANSPORT_ALIASES, redis
from redis.backoff import NoBackoff
from redis.client import PubSub
from redis.exceptions import ConnectionError  # noqa: A004 - kombu expects this class
from redis.retry import Retry

from shared.connections.connect import remember

#: One more try, on a new connection.
_RETRIES = 1


class ReadySub(PubSub):
    """Reads only what has arrived, and never waits.

    Kombu reads a pub/sub socket in its event loop once it is readable. When the connection was reset, redis-py makes a
    new one inside the same call and waits for a message on it without a timeout: the worker blocks, connected and
    alive, until a remote control command arrives. Related: celery/celery#2606; no upstream issue known for this cause.
    """

    def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """The next message; None when there is none. Raises: RedisError."""
        connection: Any = self.connection
        read: Any = super().parse_response
        if block and not connection.can_read(timeout=0):
            return None
        return read(block=False, timeout=timeout or connection.socket_timeout or 1)


class _PatchedChannel:
    """Patches of both kinds of channels. No upstream issue is known for the retries.

    A popped message is noted as taken by a command of its own; without a retry a dead connection loses the message
    until the reaper misses it (celery/kombu#305 is about lost messages in general). Connections of the event loop must
    not retry: redis-py would replace a socket that the loop still waits on.
    """

    def _connparams(self: Any, asynchronous: bool = False) -> dict[str, Any]:
        if getattr(self.connection, "client", None) is None:
            # The error of celery/kombu#83: AttributeError for a closed connection, which no caller expects: the
            # acknowledgement of a task that outlived its connection ended the whole worker.
            raise ConnectionError("the connection to the broker was closed")
        params: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[misc]
        if not asynchronous:
            params["retry"] = Retry(NoBackoff(), _RETRIES)
        return params

    def _get_pool(self: Any, asynchronous: bool = False) -> Any:
        pool = super()._get_pool(asynchronous)  # type: ignore[misc]
        if not asynchronous:
            remember(pool)
        return pool

    @cached_property
    def subclient(self: Any) -> ReadySub:
        """The connection of remote control."""
        return ReadySub(self._create_client(asynchronous=True).connection_pool)


class Channel(_PatchedChannel, redis.Channel):
    """To one Redis."""


class SentinelChannel(_PatchedChannel, redis.SentinelChannel):
    """To the master that Sentinel names."""


class Transport(redis.Transport):
    """redis:// and rediss://."""

    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    """sentinel://."""

    Channel = SentinelChannel


def install() -> None:
    """Make kombu use these for its URLs, and Celery our pool of threads, in this process. Repeatable."""
    pools: dict[str, str] = vars(concurrency)["ALIASES"]
    pools["threads"] = "shared.tasks.thread_pool:ThreadPool"
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "shared.tasks.redis_transport:Transport"))
    TRANSPORT_ALIASES["sentinel"] = "shared.tasks.redis_transport:SentinelTransport"
