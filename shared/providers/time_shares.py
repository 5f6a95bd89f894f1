"""How much of the time that is left a call may take that an answer can do without: no helper spends the time of others.

Every share is of what is left when the call begins, so that calls that run in turn on a few threads shrink with what
has been spent, and what comes behind them keeps its part. A model in this process cannot be interrupted: such a call is
not begun without time, and what waits for its turn stops waiting.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Literal

from shared.errors import DeadlineError, TransientError
from shared.providers.http_deadline import time_left, until

SharedCall = Literal[
    "routing", "decomposition", "listing", "rewriting", "embedding", "directories", "leaf rerank", "binding", "columns",
    "root rerank", "summary", "verifying", "another's call",
]  # fmt: skip
#: Of the time for leaves (the deadline less `Job.leaf_reserve`); the root rerank and the summary of the whole time.
SHARES: Mapping[SharedCall, float] = {
    "routing": 0.1,
    "decomposition": 0.4,  # of the question, and of each branch; both asks together
    "listing": 0.25,  # each of two questions to the search pool
    "rewriting": 0.2,
    "embedding": 0.25,  # where other arms search too
    "directories": 0.5,
    "leaf rerank": 0.25,
    "binding": 0.2,  # each answer that is read for a leaf that waited
    "columns": 0.5,
    "root rerank": 0.5,
    "summary": 0.8,
    "verifying": 0.5,  # of what the summary has left
    "another's call": 0.5,  # waiting for an identical one, before it is made here
}
#: A call gets so many seconds even where its share is less, and is not begun with less.
LEAST_S = 0.2


def seconds_for(call: SharedCall, left_s: float) -> float:
    """Seconds that `call` may take of `left_s`; 0.0 when it is not worth while to begin it."""
    return max(SHARES[call] * left_s, LEAST_S) if left_s >= LEAST_S else 0.0


@contextmanager
def share_of(call: SharedCall, left_s: float) -> Iterator[None]:
    """HTTP calls in this block end when the share of `call` is up. Raises: DeadlineError when there is none."""
    seconds = seconds_for(call, left_s)
    if not seconds:
        raise DeadlineError("no time was left for it")
    with until(time.monotonic() + seconds):
        yield


@contextmanager
def in_turn(lock: Lock, busy: str) -> Iterator[None]:
    """Hold `lock`, waiting for it until the block `until` around the caller ends. Raises: TransientError (`busy`)."""
    left = time_left()
    if not lock.acquire(timeout=-1 if math.isinf(left) else max(0.0, left)):
        raise TransientError(busy)
    try:
        yield
    finally:
        lock.release()
