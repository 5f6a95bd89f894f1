"""MCP over streamable HTTP, as a path of the server: the caller's key decides whose documents and jobs there are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from orchestrator.access.caller import LOCAL, Caller
from orchestrator.client import Ramify
from orchestrator.mcp.server import CorpusServer
from shared.settings import Settings


class HttpDesk:
    """Whoever calls over HTTP, with the one client of the process."""

    remote = True

    def __init__(self, client: Ramify) -> None:
        self._client = client

    def caller(self) -> Caller:
        """Whoever the request's key is of."""
        return LOCAL

    def client(self, caller: Caller) -> Ramify:
        """The client, bound to the caller's tenant."""
        return self._client.for_tenant(caller.tenant)

    def lost(self) -> None:
        """The client connects again by itself."""


class McpPath:
    """The ASGI application for the path, and what has to run while it is served."""

    path = "/mcp"

    def __init__(self, client: Ramify, settings: Settings) -> None:
        self._server = CorpusServer(HttpDesk(client), settings.mcp)
        self.app: ASGIApp = self._server.streamable_http_app(
            streamable_http_path=self.path,
            host=settings.server.host,
            max_sessions=settings.server.connections,
            max_request_body_size=settings.server.max_body_bytes,
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Keep the sessions of clients; they end with it."""
        async with self._server.session_manager.run():
            yield
