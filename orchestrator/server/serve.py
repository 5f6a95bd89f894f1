"""Runs the application under uvicorn, on one address, until a signal comes. Logs go to stderr."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from orchestrator.access.callers import Callers
from orchestrator.local import ports
from orchestrator.local.commands import bound_url
from orchestrator.server.app import make_app
from orchestrator.server.bounds import BoundedProtocol
from shared.errors import NotRunningError
from shared.settings import Settings

#: Seconds for which open requests and streams may go on after the signal.
_END_S = 5
_LOG = logging.getLogger(__name__)


def serve(settings: Settings, on_ready: Callable[[str], None] = lambda _: None, listener: int | None = None) -> None:
    """Answer until SIGINT or SIGTERM; `on_ready` gets the address. `listener`: a socket that listens already.

    Raises: InputError for a port that is taken, NotRunningError when nothing runs here and no Redis is named; as
    `check_start`.
    """
    with _listening(settings, listener) as sock:
        app = make_app(settings)
        own = settings.server
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            log_config=_logging(settings),
            access_log=own.access_log,
            timeout_keep_alive=own.idle_timeout_s,
            timeout_graceful_shutdown=_END_S,
            limit_concurrency=own.connections,
            server_header=False,
            proxy_headers=False,
        )
        check_start(app.state.callers, settings)
        address = bound_url(own.host, sock.getsockname()[1])
        _Server(config, lambda: on_ready(address), lambda: _close_listeners(app)).run([sock])


def check_start(callers: Callers, settings: Settings) -> None:
    """A Redis that is named and does not answer is waited for, as workers do: requests are refused meanwhile.

    Raises: SettingsError where callers need a key and there is none, NotRunningError when the stack's Redis is away.
    """
    try:
        callers.check_start()
    except NotRunningError as away:
        if not settings.redis.url.get_secret_value():
            raise
        _LOG.warning("%s; requests are refused until it answers", away)


def _listening(settings: Settings, listener: int | None) -> socket.socket:
    if listener is not None:
        return socket.socket(fileno=listener)
    return ports.listen("server.port", settings.server.host, settings.server.port, ports.SERVER_PORT)


def _logging(settings: Settings) -> dict[str, Any]:
    """As the pools log (`shared.logs`), in the form that uvicorn takes."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "shared.logs.formatter", "settings": settings}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
    }


def _close_listeners(app: FastAPI) -> None:
    """Streams of events would go on for all of the time that open requests have."""
    app.state.events.close_listeners()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], on_end: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready, self._on_end = on_ready, on_end

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: Any = None) -> None:
        self._on_end()
        await super().shutdown(sockets)
