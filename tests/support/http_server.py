"""The server of a test on a free port, on a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from orchestrator.server.app import make_app
from orchestrator.server.bounds import BoundedProtocol
from shared.settings import Settings
from tests.support.waiting import until


@contextmanager
def served(settings: Settings, listener: socket.socket | None = None) -> Iterator[str]:
    """The address of Ramify's server with these settings, until the block ends. `listener`: a socket to serve."""
    own = settings.server
    config = uvicorn.Config(
        make_app(settings), port=0, http=BoundedProtocol, ws="none", log_config=None,
        timeout_keep_alive=own.idle_timeout_s, limit_concurrency=own.connections,
    )  # fmt: skip
    server = uvicorn.Server(config)
    sockets = None if listener is None else [listener]
    thread = threading.Thread(target=server.run, args=(sockets,), daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{(listener or server.servers[0].sockets[0]).getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
