"""Tells what grows faster than its input by the ratio of two CPU times, which the load of the machine leaves alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Four times the input may take so many times as long; what is quadratic takes 16.
PAST_LINEAR = 8
#: CPU seconds that are measured at least: some clocks tick every 10 ms.
_MEASURED_S = 0.06
_MOST_ROUNDS = 2000


def cpu_seconds(run: Callable[[T], object], given: T) -> float:
    """CPU seconds of one round, from as many as the clock needs."""
    rounds, began = 0, time.process_time()
    while (passed := time.process_time() - began) < _MEASURED_S and rounds < _MOST_ROUNDS:
        run(given)
        rounds += 1
    return passed / rounds


def past_linear(run: Callable[[T], object], input_of: Callable[[int], T], size: int, least_s: float) -> float:
    """How many times as long an input of `size` takes as a quarter of it; 0 where that is linear or under `least_s`.

    What looks worse than linear is measured again, the first run excepted: it has to look so twice.
    """
    began = time.process_time()
    run(input_of(size))
    whole, ratio = time.process_time() - began, 0.0
    for _ in range(3):
        if whole < least_s:
            return 0.0
        ratio = whole / max(cpu_seconds(run, input_of(size // 4)), 1e-9)
        if ratio <= PAST_LINEAR:
            return 0.0
        whole = cpu_seconds(run, input_of(size))
    return ratio
