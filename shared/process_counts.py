"""Counts tasks and calls of servers in this process, until its heartbeat adds the counts to Redis."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from threading import Lock

#: Upper bounds (s) of what a task or a call of a server takes.
SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)
#: Different names that are counted: more are not ours.
_MOST_NAMES = 2000


class ProcessCounts:
    """Sums by name since they were taken last. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sums = Counter[str]()

    def add(self, name: str, outcome: str, seconds: float) -> None:
        """One more run of `name` (two words with a colon, such as `task:plan.job`): how it ended, what it took."""
        step = bisect_left(SECONDS, seconds)
        le = f"{SECONDS[step]:g}" if step < len(SECONDS) else "inf"
        with self._lock:
            if len(self._sums) < _MOST_NAMES:
                self._sums[f"count:{name}:{outcome}"] += 1
                self._sums[f"time:{name}:{le}"] += 1
                self._sums[f"us:time:{name}"] += round(seconds * 1e6)

    def take(self) -> dict[str, int]:
        """All sums, which begin anew."""
        with self._lock:
            taken, self._sums = self._sums, Counter()
        return dict(taken)

    def put_back(self, sums: Mapping[str, int]) -> None:
        """What was taken and could not be kept."""
        with self._lock:
            self._sums.update(sums)


#: Those of this process.
counts = ProcessCounts()
