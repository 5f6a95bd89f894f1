"""MCP over streamable HTTP, as a path of the server: whoever the server has let in, with the tenant of its key."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from contextvars import ContextVar

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from orchestrator.access.caller import Caller
from orchestrator.client import Ramify
from orchestrator.mcp.refusals import WordedRefusals
from orchestrator.mcp.server import CorpusServer
from orchestrator.mcp.sessions import BoundedSessions
from shared.settings import Settings

#: The server's entrance has held Host and Origin against its settings, and knows addresses that no list can name.
_CHECKED = TransportSecuritySettings(enable_dns_rebinding_protection=False)
#: Who calls. The SDK serves each message in the context of the HTTP request that brought it.
_CALLER: ContextVar[Caller] = ContextVar("mcp_caller")


class HttpDesk:
    """Whoever calls over HTTP, with the one client of the process."""

    remote = True

    def __init__(self, client: Ramify) -> None:
        self._client = client

    def caller(self) -> Caller:
        """Whoever the server has let in with this request."""
        return _CALLER.get()

    def client(self, caller: Caller) -> Ramify:
        """The client, bound to the caller's tenant."""
        return caller.client(self._client)

    def lost(self) -> None:
        """The client connects again by itself."""


class McpPath:
    """The ASGI application for the path, and what has to run while it is served."""

    path = "/mcp"

    def __init__(self, client: Ramify, settings: Settings, revoked: Callable[[Collection[str]], list[str]]) -> None:
        """`revoked`: which of some keys hold no more."""
        logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs the ids of sessions
        self._server = CorpusServer(HttpDesk(client), settings.mcp)
        most = settings.server.connections
        app = self._server.streamable_http_app(
            streamable_http_path=self.path,
            transport_security=_CHECKED,
            max_sessions=most,
            max_request_body_size=settings.server.max_body_bytes,
        )
        self._sessions = BoundedSessions(app, most, revoked)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of a caller that the server's entrance has found.

        The SDK is told of it as of its own users, so that a session is kept for the key that began it.
        Raises: KeyError where no entrance stands before it, TooManyRequestsError for one session too many.
        """
        caller: Caller = scope["state"]["caller"]
        if caller.key_id is not None:
            scopes = [scope.value for scope in caller.scopes]
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=caller.key_id, scopes=scopes))
        held = _CALLER.set(caller)
        try:
            await self._sessions.serve(caller, scope, receive, WordedRefusals(send).send)
        finally:
            _CALLER.reset(held)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Keep the sessions of clients; they end with it."""
        async with self._server.session_manager.run():
            yield
