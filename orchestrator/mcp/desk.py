"""For whom a request is served: the caller with its tenant, and a client bound to it. Over stdio and over HTTP."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Protocol

from orchestrator.access.caller import LOCAL, Caller
from orchestrator.client import Ramify
from shared.errors import NotRunningError
from shared.settings import Settings


class Desk(Protocol):
    """Whom requests come from. `remote`: they may not name files of this machine."""

    remote: bool

    def caller(self) -> Caller:
        """Who makes the request that is served now. Raises: UnknownCallerError."""

    def client(self, caller: Caller) -> Ramify:
        """A client of the caller's tenant. Raises: NotRunningError."""

    def lost(self) -> None:
        """The client has raised NotRunningError."""


class StdioDesk:
    """The one who has started this process, for one tenant. Connects at the first call, and anew after an outage."""

    remote = False

    def __init__(self, settings: Settings, tenant: str | None = None) -> None:
        self._settings = settings
        self._caller = LOCAL if tenant is None else LOCAL.model_copy(update={"tenant": tenant})
        self._open: Ramify | None = None
        self._lock = Lock()

    def caller(self) -> Caller:
        """Always the same one."""
        return self._caller

    def client(self, caller: Caller) -> Ramify:
        """The client of this process; the stack that runs now is looked for where there is none."""
        with self._lock:
            if self._open is None:
                self._open = Ramify(self._settings, caller.tenant)
            return self._open

    def lost(self) -> None:
        """Look for the stack again at the next call: it may have another address. Calls under way keep the old one."""
        with self._lock:
            self._open = None

    def close(self) -> None:
        """Close the connections."""
        with self._lock, suppress(NotRunningError):
            if self._open is not None:
                self._open.close()
            self._open = None
