"""The signals that ask the supervisor to stop: taken note of, and acted upon where it waits."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class StopAskedError(Exception):
    """A signal came while we waited."""


class StopSignals:
    """Counts SIGINT, SIGTERM and SIGHUP while they are taken; of the main thread."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take them inside the block."""

        def note(*_: object) -> None:
            self.count += 1

        kept = {signum: signal.signal(signum, note) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            yield
        finally:
            for signum, handler in kept.items():
                signal.signal(signum, handler)

    def keep_waiting(self) -> None:
        """Call it while waiting. Raises: StopAskedError once a signal has come."""
        if self.count:
            raise StopAskedError
