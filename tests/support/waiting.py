"""Waits for what other threads and processes do: the only such loops of the tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def last(asked: Callable[[], T], seconds: float, every_s: float = 0.02) -> T:
    """The first true value of `asked`, or what it gave last once `seconds` have passed."""
    end = time.monotonic() + seconds
    while not (value := asked()) and time.monotonic() < end:
        time.sleep(every_s)
    return value


def until(asked: Callable[[], T], seconds: float = 30.0, what: str = "", every_s: float = 0.02) -> T:
    """The first true value of `asked`. Raises: AssertionError when there is none within `seconds`."""
    value = last(asked, seconds, every_s)
    assert value, f"did not happen in {seconds:.0f} s: {what or asked}"
    return value


def seconds_until(asked: Callable[[], object], seconds: float = 30.0, what: str = "", every_s: float = 0.02) -> float:
    """How long `until` took."""
    began = time.monotonic()
    until(asked, seconds, what, every_s)
    return time.monotonic() - began
