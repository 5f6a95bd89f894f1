"""Kombu's Redis transport, where its way back after a lost connection needs help. Behaves the same otherwise.

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
from redis.exceptions import ConnectionError  # noqa: A004 - kombu knows this one
from redis.retry import Retry

from shared.connections.connect import remember

#: One more try, on a new connection.
_RETRIES = 1


class ReadySub(PubSub):
    """Reads what is there, and does not wait for what is not.

    Kombu reads a pub/sub socket in its event loop, once that is said to be readable. When it is not (the connection was
    reset, and redis-py made a new one inside the same call), redis-py 8 waits for a message without any timeout: the
    whole worker stands still, connected and alive, until somebody sends a remote control command.
    """

    def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """The next message; None when there is none. Raises: RedisError."""
        connection: Any = self.connection
        read: Any = super().parse_response
        if block and not connection.can_read(timeout=0):
            return None
        return read(block=False, timeout=timeout or connection.socket_timeout or 1)


class _Steady:
    """What both kinds of channels share. Retries: for the commands alone, never for what the event loop reads.

    A message that was popped is noted as taken by a command of its own; when that meets a dead connection and is not
    tried again, the message is lost until the reaper misses it. On the event loop's connections a retry inside redis-py
    replaces a socket that the loop still waits on.
    """

    def _connparams(self: Any, asynchronous: bool = False) -> dict[str, Any]:
        if getattr(self.connection, "client", None) is None:
            # Else AttributeError, as which nobody expects it: the acknowledgement of a task that outlived its
            # connection ended the whole worker.
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


class Channel(_Steady, redis.Channel):
    """To one Redis."""


class SentinelChannel(_Steady, redis.SentinelChannel):
    """To the master that Sentinel names."""


class Transport(redis.Transport):
    """redis:// and rediss://."""

    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    """sentinel://."""

    Channel = SentinelChannel


def install() -> None:
    """Make kombu use these for its URLs, and Celery our pool of threads, in this process. Changes nothing twice."""
    pools: dict[str, str] = vars(concurrency)["ALIASES"]
    pools["threads"] = "shared.tasks.thread_pool:ThreadPool"
    TRANSPORT_ALIASES.update(
        {
            "redis": "shared.tasks.redis_transport:Transport",
            "rediss": "shared.tasks.redis_transport:Transport",
            "sentinel": "shared.tasks.redis_transport:SentinelTransport",
        }
    )
