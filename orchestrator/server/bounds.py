"""Bounds of what a client sends: the size of a body, and how long it may take to come. Also of headers."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from orchestrator.server.problems import refuse


class _RefusedError(Exception):
    """A body was refused while the application read it."""


class BodyBounds:
    """Refuses bodies of more than `most_bytes`, those of which nothing comes for `pause_s` seconds, and packed ones.

    A body that is bounded has to be whole after four times that. Paths below `streamed` are bounded in pauses alone,
    and may be packed.
    """

    def __init__(self, app: ASGIApp, most_bytes: int, pause_s: float, streamed: tuple[str, ...] = ()) -> None:
        self._app, self._most_bytes, self._pause_s, self._streamed = app, most_bytes, pause_s, streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a bounded `receive`."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _BoundedBody(receive, self._most_bytes, self._pause_s, whole=scope["path"] not in self._streamed)
        began = False

        async def noted(message: Message) -> None:
            nonlocal began
            if not began and body.refused:  # the framework answers an error of its own
                return
            began = True
            await send(message)

        given = dict(scope["headers"])
        if body.whole and given.get(b"content-encoding", b"identity").strip().lower() not in {b"", b"identity"}:
            await self._refuse(415, scope, receive, send)
            return
        declared = given.get(b"content-length", b"0")
        if body.whole and declared.isdigit() and int(declared) > self._most_bytes:
            await self._refuse(413, scope, receive, send)
            return
        try:
            await self._app(scope, body.receive, noted)
        except _RefusedError:
            if began:
                raise
        if body.refused and not began:
            await self._refuse(body.refused, scope, receive, send)

    async def _refuse(self, status: int, scope: Scope, receive: Receive, send: Send) -> None:
        said = {
            413: f"the body is too large: send at most {self._most_bytes:,} bytes",
            415: "the body is taken as it is: leave the header Content-Encoding out",
            408: f"the body did not come in time: send it without pauses of {self._pause_s:g} seconds",
        }[status]
        await refuse(status, said, {"Connection": "close"})(scope, receive, send)


class _BoundedBody:
    """One request's body as it comes in."""

    def __init__(self, receive: Receive, most_bytes: int, pause_s: float, *, whole: bool) -> None:
        self._receive, self._most_bytes, self._pause_s, self.whole = receive, most_bytes, pause_s, whole
        self._read, self._more = 0, True
        self._end = asyncio.get_running_loop().time() + 4 * pause_s
        self.refused = 0

    async def receive(self) -> Message:
        """The next part. Raises: _RefusedError beyond the bounds."""
        if not self._more:
            return await self._receive()
        left = self._end - asyncio.get_running_loop().time() if self.whole else self._pause_s
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, min(left, self._pause_s)))
        except TimeoutError:
            self.refused = 408
            raise _RefusedError from None
        self._read += len(message.get("body", b""))
        self._more = bool(message.get("more_body"))
        if self.whole and self._read > self._most_bytes:
            self.refused = 413
            raise _RefusedError
        return message


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 in which the head of a request has to be whole after the time-out of idle connections.

    uvicorn itself bounds the pause between two requests only: a connection that sends nothing, or its head byte by
    byte, would stay for ever.
    """

    _head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for a head."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Read on; the time of a head runs from its first byte, or from the beginning of the connection."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._head_came()
        elif self._head_due is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._head_came()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._head_due = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _head_came(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None
