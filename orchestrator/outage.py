"""Bears a Redis that is away for a while, for those who only look: the work goes on without them, or after it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from shared.errors import NotRunningError
from shared.models import Event

#: Seconds that Redis may be away, while it is started again or a replica takes over, before nobody waits any more.
OUTAGE_S = 60.0
_PAUSE_S = 0.5
_log = logging.getLogger(__name__)
T = TypeVar("T")


def _logged(text: str) -> None:
    _log.warning("%s", text)


class Outage:
    """How long Redis has been away, as one follower sees it. `tell` is given one sentence for each outage."""

    def __init__(self, tell: Callable[[str], None] = _logged, limit_s: float | None = None) -> None:
        self._tell, self._limit_s = tell, OUTAGE_S if limit_s is None else limit_s
        self._since: float | None = None

    def bear(self, error: NotRunningError) -> None:
        """Wait half a second. Raises: `error`, when this has lasted too long."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self._tell(f"{error}; waiting for it up to {self._limit_s:.0f} s")
        if now - self._since > self._limit_s:
            raise error
        time.sleep(_PAUSE_S)

    def over(self) -> None:
        """Redis has answered."""
        self._since = None

    def through(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, asked again while Redis is away. Raises: what it raises otherwise."""
        while True:
            try:
                given = ask()
            except NotRunningError as error:
                self.bear(error)
            else:
                self.over()
                return given

    def stream(self, events: Callable[[str], Iterator[Event]]) -> Iterator[Event]:
        """What `events("0")` gives, taken up after the last event that came each time when Redis was away.

        Raises: NotRunningError at once when it is away before the first event.
        """
        after = "0"
        while True:
            try:
                for event in events(after):
                    after = event.id
                    self.over()
                    yield event
            except NotRunningError as error:
                if after == "0":
                    raise
                self.bear(error)
            else:
                return
