"""The lane of the running task, a context variable: gates and single flights serve interactive work before batch work.

What runs outside of a job's task, such as `find`, is interactive.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from shared.models import Lane

_LANE: ContextVar[Lane] = ContextVar("ramify_lane", default=Lane.INTERACTIVE)


@contextmanager
def in_lane(lane: Lane) -> Iterator[None]:
    """Calls of servers inside are made for work of `lane`."""
    token = _LANE.set(lane)
    try:
        yield
    finally:
        _LANE.reset(token)


def running_lane() -> Lane:
    """The lane of the work that this thread does now."""
    return _LANE.get()
