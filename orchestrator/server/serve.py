"""Runs the application under uvicorn, on one address, until a signal comes. Logs go to stderr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from orchestrator.local import ports
from orchestrator.server.app import make_app
from orchestrator.server.bounds import BoundedProtocol
from shared.settings import Settings

USUAL_PORT = 8321
#: Seconds for which open requests and streams may go on after the signal.
_END_S = 5


def serve(settings: Settings, on_ready: Callable[[str], None] = lambda _: None) -> None:
    """Listen until SIGINT or SIGTERM; `on_ready` gets the address.

    Raises: InputError for a port that is taken, SettingsError where callers need a key and there is none,
    NotRunningError when nothing runs here and no Redis is named.
    """
    own = settings.server
    port = ports.pick("server.port", own.host, own.port, USUAL_PORT)
    app = make_app(settings)
    app.state.callers.check_start()
    config = uvicorn.Config(
        app,
        host=own.host,
        port=port,
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
    _Server(config, lambda: on_ready(address(own.host, port)), lambda: _close_listeners(app)).run()


def _logging(settings: Settings) -> dict[str, Any]:
    """As the pools log (`shared.logs`), in the form that uvicorn takes."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "shared.logs.formatter", "settings": settings}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
    }


def address(host: str, port: int) -> str:
    """Where a person finds it; a wildcard address is shown as this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - shown
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


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
