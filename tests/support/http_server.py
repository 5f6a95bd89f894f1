"""HTTP servers of tests on free ports, on threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import uvicorn

from orchestrator.server.app import make_app
from shared.settings import Settings
from tests.support.waiting import until


def served(settings: Settings) -> AbstractContextManager[str]:
    """The address of Ramify's server with these settings, until the block ends."""
    return listening(make_app(settings))


@contextmanager
def listening(app: Any, **config: Any) -> Iterator[str]:
    """The same of any ASGI application. `config`: of uvicorn."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, ws="none", log_config=None, lifespan="on", **config))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
