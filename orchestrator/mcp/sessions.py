"""Sessions of MCP clients over HTTP: a share of them per key and per tenant, and none of keys that are revoked.

The SDK bounds sessions for all callers together, and keeps those of a dead key until they are idle for long.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import anyio
from mcp.server.streamable_http_manager import DEFAULT_SESSION_IDLE_TIMEOUT
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.access.caller import Caller
from orchestrator.access.places import Shares
from shared.errors import NotRunningError, TooManyRequestsError

_ID, _VERSION = "mcp-session-id", "mcp-protocol-version"
_RETRY_AFTER_S = 30.0
_log = logging.getLogger(__name__)


class _Session:
    """One session, from the request that opens it. `requests`: how many it is serving, a stream of events too."""

    def __init__(self, caller: Caller, user: Any) -> None:
        self.caller, self.user = caller, user
        self.id, self.requests, self.used_at = "", 0, time.monotonic()

    @contextmanager
    def serving(self) -> Iterator[None]:
        """While a request of it is served."""
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1
            self.used_at = time.monotonic()


class BoundedSessions:
    """Serves requests by `app`, the SDK's application, which has room for `most` sessions.

    `revoked` says which of some keys hold no more; it runs in a thread. Where there is no room, sessions of such keys
    end, then the caller's own session that was idle for longest.
    """

    def __init__(self, app: ASGIApp, most: int, revoked: Callable[[Collection[str]], list[str]]) -> None:
        self._app, self._most, self._revoked = app, most, revoked
        self._shares = Shares.of(most)
        self._sessions = list[_Session]()
        self._lock = anyio.Lock()

    async def serve(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises: TooManyRequestsError where there is no room for the session that it would open."""
        headers = Headers(scope=scope)
        session = self._found(headers.get(_ID, ""), caller)
        if session is None and _opens(headers):
            async with self._lock:
                await self._make_room(caller)
                session = _Session(caller, scope.get("user"))
                self._sessions.append(session)
        if session is None:
            await self._app(scope, receive, send)
            return
        try:
            with session.serving():
                await self._app(scope, receive, _noting(session, scope, send))
        finally:
            if not session.id:
                self._forget(session)

    def _found(self, session_id: str, caller: Caller) -> _Session | None:
        if not session_id:
            return None
        own = (one for one in self._sessions if one.id == session_id and one.caller.key_id == caller.key_id)
        return next(own, None)

    def _forget(self, session: _Session) -> None:
        if session in self._sessions:
            self._sessions.remove(session)

    async def _make_room(self, caller: Caller) -> None:
        self._forget_idle()
        if self._has_room(caller):
            return
        for session in await self._of_revoked():
            await self._end(session)
        if self._has_room(caller):
            return
        own = [one for one in self._sessions if one.caller.key_id == caller.key_id and one.id and not one.requests]
        if not own:
            raise TooManyRequestsError("no more sessions can be opened with this key: end one of them", _RETRY_AFTER_S)
        await self._end(min(own, key=lambda one: one.used_at))

    def _forget_idle(self) -> None:
        """The SDK has ended these itself."""
        oldest = time.monotonic() - DEFAULT_SESSION_IDLE_TIMEOUT - _RETRY_AFTER_S
        self._sessions = [one for one in self._sessions if one.requests or one.used_at > oldest]

    def _has_room(self, caller: Caller) -> bool:
        if len(self._sessions) >= self._most:
            return False
        if caller.key_id is None:
            return True
        of_key = sum(one.caller.key_id == caller.key_id for one in self._sessions)
        of_tenant = sum(one.caller.tenant == caller.tenant for one in self._sessions)
        return of_key < self._shares.key and of_tenant < self._shares.tenant

    async def _of_revoked(self) -> list[_Session]:
        keys = {one.caller.key_id for one in self._sessions if one.caller.key_id is not None}
        try:
            revoked = set(await anyio.to_thread.run_sync(self._revoked, keys))
        except NotRunningError:
            return []
        return [one for one in self._sessions if one.caller.key_id in revoked and one.id]

    async def _end(self, session: _Session) -> None:
        """As its client would."""
        self._forget(session)
        scope = {
            "type": "http", "http_version": "1.1", "method": "DELETE", "scheme": "http", "path": "/mcp",
            "raw_path": b"/mcp", "query_string": b"", "root_path": "",
            "headers": [(_ID.encode(), session.id.encode())],
        }  # fmt: skip
        if session.user is not None:
            scope["user"] = session.user
        try:
            await self._app(scope, _nothing, _nowhere)
        except Exception:  # noqa: BLE001 - the caller who wants room is not at fault
            _log.exception("a session could not be ended")


def _opens(headers: Headers) -> bool:
    """True where the SDK makes a session: newer versions of the protocol have none."""
    return not headers.get(_ID) and headers.get(_VERSION, HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS


def _noting(session: _Session, scope: Scope, send: Send) -> Send:
    async def noted(message: Message) -> None:
        if message["type"] == "http.response.start":
            status, opened = message["status"], not session.id
            if opened and status < HTTPStatus.BAD_REQUEST:
                session.id = Headers(raw=message["headers"]).get(_ID, "")
            elif not opened and (status == HTTPStatus.NOT_FOUND or scope["method"] == "DELETE"):
                session.id = ""
        await send(message)

    return noted


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nowhere(_: Message) -> None:
    pass
