"""An application behind a real socket, on a thread of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from orchestrator.server.bounds import BoundedProtocol
from tests.support.waiting import until


@contextmanager
def served(app: ASGIApp, **config: Any) -> Iterator[int]:
    """The port that it listens on, on loopback. `config`: of uvicorn."""
    given = {"http": BoundedProtocol, "ws": "none", "log_config": None, "lifespan": "on", **config}
    server = uvicorn.Server(uvicorn.Config(app, port=0, **given))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(10)
