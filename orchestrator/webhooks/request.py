"""One signed POST of a delivery, to an address that was checked, within one time for all of it.

It follows no redirect and reads no body of the reply. It is no general client: httpx and http.client resolve names
themselves, and their time-outs begin anew with each byte.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple, cast
from urllib.parse import SplitResult, urlsplit

from orchestrator.webhooks.addresses import Address, port_of, resolve
from shared.errors import PermanentError, TransientError
from shared.settings.access import WebhookSettings

_MAX_HEAD_BYTES = 16_384
_LONGEST_RETRY_AFTER_DIGITS = 9


class Reply(NamedTuple):
    """What the receiver said: the status, and the seconds that it asked to wait for, if it did."""

    status: int
    retry_after: float | None = None

    @property
    def taken(self) -> bool:
        """Whether the receiver has taken the delivery."""
        return 200 <= self.status < 300


def signed_headers(secret: str, delivery_id: str, body: str) -> dict[str, str]:
    """The headers of Standard Webhooks. Raises: TransientError where the package for signatures is not installed."""
    try:
        from standardwebhooks import Webhook  # noqa: PLC0415 - of the extra `server`
    except ImportError:
        raise TransientError("the package for signatures is missing: install ramify[server] for the ops pool") from None
    now = datetime.now(UTC)
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(delivery_id, now, body),
    }


def post(url: str, headers: Mapping[str, str], body: str, settings: WebhookSettings) -> Reply:
    """Send it. Raises: TransientError; PermanentError where the URL leads to an address that may not be called."""
    parts, deadline = urlsplit(url), time.monotonic() + settings.timeout_s
    if parts.scheme != "https" and not settings.allow_http:
        raise PermanentError("it is no https:// URL, and webhooks.allow_http is not set")
    addresses = resolve(parts, settings)
    try:
        with _connected(addresses, port_of(parts), deadline) as plain:
            if parts.scheme == "https":
                plain.settimeout(_left(deadline))
                with _tls().wrap_socket(plain, server_hostname=parts.hostname) as encrypted:
                    return _exchange(encrypted, parts, headers, body, deadline)
            return _exchange(plain, parts, headers, body, deadline)
    except TimeoutError:
        raise TransientError(f"no answer within {settings.timeout_s:g} s") from None
    except ssl.SSLError as error:
        raise TransientError(f"TLS failed: {error.reason or type(error).__name__}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise TransientError(f"the connection failed: {reason}") from None


@cache
def _tls() -> ssl.SSLContext:
    """It takes 20 ms to read the certificates."""
    return ssl.create_default_context()


def _connected(addresses: Sequence[Address], port: int, deadline: float) -> socket.socket:
    """A connection to the first of the addresses that takes one."""
    for address in addresses[:-1]:
        with suppress(ConnectionError):
            return socket.create_connection((str(address), port), _left(deadline))
    return socket.create_connection((str(addresses[-1]), port), _left(deadline))


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _exchange(
    connection: socket.socket, parts: SplitResult, headers: Mapping[str, str], body: str, deadline: float
) -> Reply:
    sent = body.encode()
    own = {
        "Host": parts.netloc,
        "User-Agent": "Ramify",
        "Content-Type": "application/json",
        "Content-Length": str(len(sent)),
        "Connection": "close",
    }
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    head = "".join(f"{name}: {value}\r\n" for name, value in (own | dict(headers)).items())
    connection.settimeout(_left(deadline))
    connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode("ascii") + sent)
    return _reply(connection, deadline)


def _reply(connection: socket.socket, deadline: float) -> Reply:
    """The first reply that is no announcement of another (1xx)."""
    read = b""
    while True:
        while b"\r\n\r\n" not in read:
            if len(read) > _MAX_HEAD_BYTES:
                raise TransientError(f"its reply begins with more than {_MAX_HEAD_BYTES:,} bytes of headers")
            connection.settimeout(_left(deadline))
            if not (more := connection.recv(4096)):
                raise TransientError("it closed the connection without a reply")
            read += more
        head, _, read = read.partition(b"\r\n\r\n")
        reply = http.client.HTTPResponse(cast(socket.socket, _Head(head + b"\r\n\r\n")))
        reply.begin()
        if reply.status >= 200:
            after = reply.getheader("Retry-After", "")
            seconds = after.isascii() and after.isdigit() and len(after) <= _LONGEST_RETRY_AFTER_DIGITS
            return Reply(reply.status, float(after) if seconds else None)


class _Head:
    """What http.client reads of a socket, where the bytes are there already."""

    def __init__(self, head: bytes) -> None:
        self._head = head

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._head)
