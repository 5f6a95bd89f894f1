"""Bounds of what a client sends: the size of a body, and how long it may take to come. Also of headers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any
from weakref import WeakKeyDictionary

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from orchestrator.server.problems import refuse

#: Of a body whose request was answered so much is read yet, for so many seconds.
_REST_BYTES, _REST_S = 1 << 24, 3.0
#: Bytes a second of a streamed body, at least.
_LEAST_RATE = 1024 / 60


#: Told where all connections have a request under way; seconds to wait then.
ALL_BUSY = "all connections of this server have a request under way: try again in a few seconds"
BUSY_S = 2.0


_idle_of = WeakKeyDictionary[ServerState, "IdleConnections"]()


class _RefusedError(Exception):
    """A body was refused while the application read it."""


class BodyBounds:
    """Refuses bodies of more than `most_bytes`, those of which nothing comes for `pause_s` seconds, and packed ones.

    A body that is bounded has to be whole after four times that. Those of the paths `streamed` may have any size, and
    be packed; 1,024 bytes give them a minute more, up to four times `pause_s`. Time without a reader is not counted.
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
            408: f"the body did not come in time: send it faster, without pauses of {self._pause_s:g} seconds",
        }[status]
        await refuse(status, said, {"Connection": "close"})(scope, receive, send)


class _BoundedBody:
    """One request's body as it comes in."""

    def __init__(self, receive: Receive, most_bytes: int, pause_s: float, *, whole: bool) -> None:
        self._receive, self._most_bytes, self._pause_s, self.whole = receive, most_bytes, pause_s, whole
        self._read, self._more = 0, True
        self._time = asyncio.get_running_loop().time
        self._most_s = self._left_s = 4 * pause_s
        self._end = self._time() + self._most_s
        self.refused = 0

    async def receive(self) -> Message:
        """The next part. Raises: _RefusedError beyond the bounds."""
        if not self._more:
            return await self._receive()
        began = self._time()
        left = self._end - began if self.whole else self._left_s
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, min(left, self._pause_s)))
        except TimeoutError:
            self.refused = 408
            raise _RefusedError from None
        size = len(message.get("body", b""))
        self._read += size
        self._left_s = min(self._most_s, self._left_s - (self._time() - began) + size / _LEAST_RATE)
        self._more = bool(message.get("more_body"))
        if self.whole and self._read > self._most_bytes:
            self.refused = 413
            raise _RefusedError
        return message


async def _all_busy(scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(503, ALL_BUSY, {"Retry-After": f"{BUSY_S:.0f}", "Connection": "close"})(scope, receive, send)


class IdleConnections:
    """Those of one server without a request: they wait for a head, or send the rest of a body that nobody wants."""

    def __init__(self) -> None:
        self._of_address = defaultdict[str, dict[BoundedProtocol, None]](dict)  # the oldest first

    def add(self, connection: BoundedProtocol) -> None:
        """From now on it is idle."""
        self._of_address[connection.address][connection] = None

    def remove(self, connection: BoundedProtocol) -> None:
        """It has a request, or is gone."""
        own = self._of_address[connection.address]
        own.pop(connection, None)
        if not own:
            del self._of_address[connection.address]

    def end_one(self) -> bool:
        """End the oldest one of the address that has most of them. False where there is none."""
        if not self._of_address:
            return False
        most = max(self._of_address.values(), key=len)
        oldest = next(iter(most))
        self.remove(oldest)
        oldest.end()
        return True


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 in which heads have a time, and what is left of a body behind its reply has one too.

    uvicorn itself bounds the pause between two requests only: a connection that sends nothing, or its head byte by
    byte, would stay for ever, and so would one that was answered and sends on its body. Where there are as many
    connections as there may be (uvicorn's `limit_concurrency`), a new one takes the place of one without a request.
    """

    _head_due: asyncio.TimerHandle | None = None
    _rest_due: asyncio.TimerHandle | None = None
    _rest_left = 0
    _idle: IdleConnections

    def connection_made(self, transport: Any) -> None:
        """Wait for a head."""
        super().connection_made(transport)
        self._idle = _idle_of.setdefault(self.server_state, IdleConnections())
        most, self.limit_concurrency = self.limit_concurrency, None
        if most is not None and len(self.connections) > most and not self._idle.end_one():
            self.app = _all_busy
        self._wait_for_head()

    @property
    def address(self) -> str:
        """Of the client."""
        return self.client[0] if self.client else ""

    def end(self) -> None:
        """Make room for others, at once."""
        self.connections.discard(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on; the time of a head runs from its first byte, or from the beginning of the connection."""
        self._rest_left -= len(data)
        super().data_received(data)
        if self.conn.their_state is not h11.SEND_BODY:
            self._rest_came()
        elif self._rest_due is not None and self._rest_left < 0:
            self.transport.close()
        if self.conn.their_state is not h11.IDLE:
            self._head_came()
        elif self._head_due is None:
            self._wait_for_head()

    def handle_events(self) -> None:
        """Begin requests. One that gives its length twice over is the last (RFC 9112, 6.1): others may read it so."""
        super().handle_events()
        if self.cycle is not None and {b"content-length", b"transfer-encoding"} <= dict(self.headers).keys():
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """Read some of a body that nobody wants: a client that is still sending would not see the reply."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._rest_left = _REST_BYTES
            self._rest_due = self.loop.call_later(_REST_S, self.transport.close)
            self._idle.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._head_came()
        self._rest_came()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._head_due = self.loop.call_later(self.timeout_keep_alive, self.transport.close)
        self._idle.add(self)

    def _head_came(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None
            self._idle.remove(self)

    def _rest_came(self) -> None:
        if self._rest_due is not None:
            self._rest_due.cancel()
            self._rest_due = None
            self._idle.remove(self)
