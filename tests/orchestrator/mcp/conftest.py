"""Sessions of the SDK's own client, with servers in this process and in others."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from orchestrator.client import Ramify
from orchestrator.mcp.desk import StdioDesk
from orchestrator.mcp.server import CorpusServer
from shared.settings import Settings
from tests.support.fixtures import empty_folder, ramify, store
from tests.support.waiting import until

__all__ = ["Session", "ask_and_cancel", "empty_folder", "ramify", "stdio", "store", "within"]

Session = Callable[[Client], Awaitable[Any]]
_ROOT = Path(__file__).parents[3]


def within(target: Any, session: Session, **options: Any) -> Any:
    """What `session` gives of a client of `target`; 30 s at most."""

    async def run() -> Any:
        with anyio.fail_after(30):
            async with Client(target, **options) as client:
                return await session(client)

    return anyio.run(run)


def stdio(redis_url: str, *given: str) -> StdioServerParameters:
    """`ramify mcp` as a client starts it."""
    settings = {"RAMIFY_REDIS__URL": redis_url} if redis_url else {}
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "orchestrator.cli.main", *given, "mcp"],
        env={**os.environ, "PYTHONPATH": str(_ROOT), **settings},
    )


async def ask_and_cancel(client: Client, ramify: Ramify, **arguments: str) -> None:
    """Ask, and cancel the call once its job is there."""
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "ask", {"question": "why?", **arguments})
        await anyio.to_thread.run_sync(lambda: until(ramify.jobs, 20))
        group.cancel_scope.cancel()


@pytest.fixture
def server(client: object, settings: Settings) -> Callable[..., CorpusServer]:
    """A server in this process, over the empty Redis of the tests; `options` are settings of `mcp`."""

    def made(tenant: str | None = None, **options: Any) -> CorpusServer:
        own = settings.mcp.model_copy(update={"wait_s": 0.3, **options})
        return CorpusServer(StdioDesk(settings, tenant), own)

    return made
