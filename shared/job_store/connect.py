"""Connects to Redis, and says in one sentence when it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from shared.errors import NotRunningError, SettingsError
from shared.settings import Settings


def connect(settings: Settings) -> redis.Redis:
    """A client with timeouts on everything and two retries on lost connections. Connects at first use.

    Raises: NotRunningError when no URL is known, SettingsError when it is no Redis URL.
    """
    url = settings.redis.url.get_secret_value()
    if not url:
        raise NotRunningError("no Redis is known: start the stack with `ramify up -d`, or set redis.url")
    try:
        return redis.Redis.from_url(
            url,
            socket_timeout=settings.redis.timeout_s,
            socket_connect_timeout=settings.redis.timeout_s,
            health_check_interval=25,
            retry=Retry(ExponentialWithJitterBackoff(cap=1, base=0.05), 2),
        )
    except ValueError as error:
        raise SettingsError("redis.url", where(url), f"{error}") from None


def where(url: str) -> str:
    """Host and port of a URL, without its password."""
    parts = urlsplit(url)
    return f"{parts.hostname or ''}:{parts.port or 6379}" if parts.hostname else parts.path


@contextmanager
def reachable(settings: Settings) -> Iterator[None]:
    """Turns lost connections inside the block into one sentence.

    Raises: NotRunningError naming the address and the fix.
    """
    place = where(settings.redis.url.get_secret_value())
    try:
        yield
    except redis.exceptions.AuthenticationError:
        raise NotRunningError(f"Redis at {place} refuses the password: check redis.url") from None
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
        raise NotRunningError(
            f"Redis at {place} does not answer ({type(error).__name__}): start it with `ramify up -d`, "
            "or check redis.url; `ramify doctor` says more"
        ) from None
    except redis.exceptions.InvalidResponse:
        raise NotRunningError(f"what answers at {place} is no Redis: check redis.url") from None
    except redis.exceptions.ReadOnlyError:
        raise NotRunningError(f"Redis at {place} is a read-only replica: set redis.url to its master") from None
    except redis.exceptions.OutOfMemoryError:
        raise NotRunningError(
            f"Redis at {place} is out of memory: raise its maxmemory or let old jobs expire"
        ) from None
