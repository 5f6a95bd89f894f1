"""Where the time of an index task goes: seconds by part, added up over a task. Outside of one, it measures nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_parts: ContextVar[dict[str, float] | None] = ContextVar("parts", default=None)


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Part -> seconds of what runs inside, filled as it runs."""
    parts: dict[str, float] = {}
    token = _parts.set(parts)
    try:
        yield parts
    finally:
        _parts.reset(token)


@contextmanager
def part(name: str) -> Iterator[None]:
    """The time inside counts for `name`. Parts are not put into each other: their sum is the time they took."""
    parts = _parts.get()
    began = time.perf_counter()
    try:
        yield
    finally:
        if parts is not None:
            parts[name] = parts.get(name, 0.0) + time.perf_counter() - began
