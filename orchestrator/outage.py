"""Retries readers (status, events, answers) for up to 60 s while Redis is unreachable; writes are never repeated."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from shared.errors import NotRunningError
from shared.models import JobEvent

#: Seconds that Redis may be unreachable, while it restarts or a replica takes over, before the error is raised.
OUTAGE_S = 60.0
_PAUSE_S = 0.5
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Outage:
    """How long Redis has been unreachable for one reader. `tell` is given one sentence for each outage."""

    def __init__(self, tell: Callable[[str], None] = _log.warning, limit_s: float | None = None) -> None:
        self._tell, self._limit_s = tell, OUTAGE_S if limit_s is None else limit_s
        self._since: float | None = None

    def pause(self, error: NotRunningError) -> None:
        """Wait half a second. Raises: `error` once the outage has lasted longer than `limit_s`."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self._tell(f"{error}; waiting for it up to {self._limit_s:.0f} s")
        if now - self._since > self._limit_s:
            raise error
        time.sleep(_PAUSE_S)

    def reset(self) -> None:
        """Redis has answered."""
        self._since = None

    def retry(self, ask: Callable[[], T]) -> T:
        """What `ask` returns, called again while it raises NotRunningError. Raises: what else it raises."""
        while True:
            try:
                given = ask()
            except NotRunningError as error:
                self.pause(error)
            else:
                self.reset()
                return given

    def stream(self, events: Callable[[str], Iterator[JobEvent]]) -> Iterator[JobEvent]:
        """What `events("0")` yields; after an outage it goes on with `events(<last event id>)`.

        Raises: NotRunningError at once when Redis is unreachable before the first event.
        """
        after = "0"
        while True:
            try:
                for event in events(after):
                    after = event.id
                    self.reset()
                    yield event
            except NotRunningError as error:
                if after == "0":
                    raise
                self.pause(error)
            else:
                return
