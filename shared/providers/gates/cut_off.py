"""Remembers, in this process, the calls that got no answer in the time that their job left them.

A breaker counts what a provider does with a whole call. A call that had only its share of a job's time says nothing to
calls with more, but much to those with less: the calls of one job get shares of what is left, each less than the one
before, and without this every leaf of a job would wait its share out.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from contextvars import ContextVar
from threading import Lock
from typing import NamedTuple

from shared.providers.context import set_within

#: Jobs that are remembered; those whose time is over are forgotten first.
_MOST = 500
_JOB: ContextVar[str] = ContextVar("ramify_calls_of", default="")


def calls_of(job: str) -> AbstractContextManager[None]:
    """Calls inside belong together: they share one deadline."""
    return set_within(_JOB, job)


class CutOff(NamedTuple):
    """A call that had `had_s` seconds. It counts for as long as it took: until then, by the monotonic clock."""

    had_s: float
    until: float


class CutOffs:
    """Those of one provider. Calls with no more time than such a one had are refused for as long as it took.

    Calls of the same job; those of all, once `failures` in a row have been cut off and none answered. 0: nobody's.
    """

    def __init__(self, failures: int) -> None:
        self._failures = failures
        self._lock = Lock()
        self._in_a_row = 0
        self._last = CutOff(0.0, 0.0)
        self._of_job: dict[str, CutOff] = {}

    def note(self, had_s: float) -> None:
        """A call of the running job was cut off after `had_s` seconds."""
        now, job = time.monotonic(), _JOB.get()
        with self._lock:
            self._in_a_row += 1
            self._last = CutOff(had_s, now + had_s)
            if len(self._of_job) >= _MOST:
                self._of_job = {one: cut for one, cut in self._of_job.items() if cut.until > now}
            if job and len(self._of_job) < _MOST:
                self._of_job[job] = self._last

    def answered(self) -> None:
        """A call has been answered."""
        self._in_a_row = 0

    def against(self, may_take_s: float) -> CutOff | None:
        """Why a call of the running job that may take so many seconds is not to be made; None when it is."""
        if not self._failures:
            return None
        last = self._of_job.get(_JOB.get()) or (self._last if self._in_a_row >= self._failures else None)
        return last if last and may_take_s <= last.had_s and time.monotonic() < last.until else None
