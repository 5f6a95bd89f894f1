"""The lane of the running task, a context variable: gates and single flights serve interactive work before batch work.

What runs outside of a job's task, such as `find`, is interactive. While a batch task waits at a gate, its place in its
pool of threads is lent to interactive tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import Lock

from shared.models import Lane
from shared.providers.context import set_within

_LANE: ContextVar[Lane] = ContextVar("ramify_lane", default=Lane.INTERACTIVE)


def in_lane(lane: Lane) -> AbstractContextManager[None]:
    """Calls of servers inside are made for work of `lane`."""
    return set_within(_LANE, lane)


class LentPlaces:
    """Counts the threads of this process that do nothing but wait for batch work."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.count = 0

    @contextmanager
    def lent(self) -> Iterator[None]:
        """This thread waits."""
        with self._lock:
            self.count += 1
        try:
            yield
        finally:
            with self._lock:
                self.count -= 1


LENT_PLACES = LentPlaces()


def running_lane() -> Lane:
    """The lane of the work that this thread does now."""
    return _LANE.get()
