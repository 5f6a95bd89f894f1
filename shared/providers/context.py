"""Sets a context variable for a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def set_within(variable: ContextVar[T], value: T) -> Iterator[None]:
    """`variable` is `value` in this block, and what it was behind it."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
