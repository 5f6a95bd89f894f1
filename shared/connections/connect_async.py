"""The same connections for a program that runs an event loop, such as the HTTP server."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ExponentialWithJitterBackoff

from shared.connections.addresses import KEEPALIVE, Address, health_check_s
from shared.connections.connect import LOST
from shared.errors import NotRunningError, SettingsError
from shared.settings import Settings


def connect_async(settings: Settings, *, retries: int = 2, blocks_s: float = 0.0) -> Redis:
    """An asyncio client with timeouts on everything; a lost connection is tried again `retries` times.

    `blocks_s`: how long its longest command waits on the server.
    Raises: NotRunningError when no URL is known, SettingsError when it is no URL.
    """
    if not settings.redis.url.get_secret_value():
        raise NotRunningError("no Redis is known: start the stack with `ramify up -d`, or set redis.url")
    address, seconds = Address(settings.redis), settings.redis.timeout_s
    options: dict[str, Any] = {
        "socket_timeout": seconds + blocks_s,
        "socket_connect_timeout": seconds,
        "socket_keepalive": True,
        "socket_keepalive_options": dict(KEEPALIVE),
        "health_check_interval": health_check_s(settings.redis) if retries else 0,
        "retry": Retry(ExponentialWithJitterBackoff(cap=1, base=0.05), retries, LOST),
    }
    if address.master:
        return _by_sentinel(address, options)
    try:
        return Redis.from_url(address.redis_url, **options)
    except (ValueError, TypeError) as error:  # TypeError: an option of the URL that no client has
        raise SettingsError("redis.url", address.label, f"{error}") from None


class _SentinelClient(Redis):
    """A client of the master; closing it closes the connections to the Sentinels too."""

    sentinel: Any = None

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        await super().aclose(close_connection_pool)
        if self.sentinel:
            await self.sentinel.aclose()


def _by_sentinel(address: Address, options: dict[str, Any]) -> Redis:
    untyped: Any = Sentinel
    group = untyped(address.sentinels, sentinel_kwargs=address.sentinel_options)
    own = {name: value for name, value in address.options.items() if name not in {"host", "port"}}
    tls = {"ssl": True} if address.tls else {}
    client: _SentinelClient = group.master_for(address.master, redis_class=_SentinelClient, **options, **own, **tls)
    client.sentinel = group
    return client
