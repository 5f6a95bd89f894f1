"""An httpx transport that keeps one deadline over a whole exchange. httpx's own timeouts bound single reads only.

Never retries and never reads a reply by itself. Name resolution is bounded by the system's resolver alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from ssl import SSLContext
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from shared.providers.context import set_within

_SLICE_BYTES = 65_536
_deadline: ContextVar[float] = ContextVar("http_deadline", default=math.inf)


def until(deadline: float) -> AbstractContextManager[None]:
    """Every read, write and connect in this block (and thread) ends at `deadline`, on the clock `time.monotonic`.

    A block in a block ends with the first of the two. Raises: httpx.TimeoutException from the call that is cut short.
    """
    return set_within(_deadline, earliest(deadline))


def earliest(deadline: float) -> float:
    """`deadline`, or that of the `until` block around the caller where that is earlier."""
    return min(deadline, _deadline.get())


def time_left() -> float:
    """Seconds until the block `until` around the caller ends; infinite outside of one."""
    return _deadline.get() - time.monotonic()


class DeadlineTransport(httpx.HTTPTransport):
    """httpx's pooled transport, whose sockets obey `until`: a peer that sends a byte a second cannot outlive it."""

    def __init__(self, *, proxy: str | None, limits: httpx.Limits) -> None:
        super().__init__(proxy=proxy, limits=limits)
        # httpx offers no way to hand httpcore a backend; httpcore does. A drip test fails should this name move.
        self._pool._network_backend = _Backend()  # noqa: SLF001


class _Backend(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options))


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In slices: the inner stream applies its timeout to each send, so a slow reader would get it many times over.
        for start in range(0, len(buffer), _SLICE_BYTES):
            self._inner.write(buffer[start : start + _SLICE_BYTES], _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _left(timeout: float | None, error: type[httpcore.TimeoutException]) -> float | None:
    left = time_left()
    if left <= 0:
        raise error("the deadline has passed")
    if timeout is None:
        return None if math.isinf(left) else left
    return min(timeout, left)


def proxy_for(url: httpx.URL) -> str | None:
    """The proxy that the environment names for this host: a transport of our own switches httpx's look-up off."""
    if url.host in {"127.0.0.1", "localhost", "::1"} or proxy_bypass(url.host):
        return None
    proxies = getproxies()
    return proxies.get(url.scheme) or proxies.get("all")
