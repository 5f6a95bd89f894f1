"""MCP over the standard streams of this process: nothing but the protocol goes to stdout, logs go to stderr."""

from __future__ import annotations

import logging

import anyio

from orchestrator.mcp.desk import StdioDesk
from orchestrator.mcp.server import CorpusServer
from shared.settings import Settings


def serve_stdio(settings: Settings, tenant: str | None = None) -> None:
    """Serve the one client that has started this process, until it closes stdin."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    desk = StdioDesk(settings, tenant)
    try:
        anyio.run(CorpusServer(desk, settings.mcp).run_stdio_async)
    finally:
        desk.close()
