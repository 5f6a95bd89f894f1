"""Celery beat by the monotonic clock: the reaper looks every two seconds, whatever is done to the wall clock.

Celery's own schedulers wait for a time of day: set back by an hour, they send nothing for an hour.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.reaper.look import queue_lengths
from shared.contract import Queue

log = logging.getLogger("ramify.beat")
#: Messages that may wait when nobody takes them, in place of Celery's expiry, which compares two hosts' wall clocks.
MOST_WAITING = 5
_IDLE_S = 60.0


class SteadyScheduler(Scheduler):
    """Runs entries that repeat after a number of seconds, as all of ours do; keeps nothing on disk."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._due: dict[str, float] = {}
        super().__init__(*args, **kwargs)

    def tick(self, *_: Any, **__: Any) -> float:
        """Send what is due. Returns the seconds until something is again."""
        for name, entry in list(self.schedule.items()):
            now, every = time.monotonic(), _every(entry.schedule)
            if now >= self._due.get(name, now):
                self._due[name] = now + every
                self.apply_entry(entry, producer=self.producer)
        due = min(self._due.values(), default=time.monotonic() + _IDLE_S)
        return max(0.0, due - time.monotonic())

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send its task, unless enough of them wait already. Says what goes wrong; the next turn tries again."""
        try:
            waiting = queue_lengths(self.app, [Queue.OPS])[Queue.OPS]
        except (OperationalError, RedisError, OSError) as error:
            log.warning("%s cannot be sent (%s)", entry.name, type(error).__name__)
            return
        if waiting >= MOST_WAITING:
            log.warning("%s is not sent: %d messages of the ops queue wait, and nobody takes them", entry.name, waiting)
            return
        super().apply_entry(entry, producer=producer)


def _every(schedule: Any) -> float:
    """Seconds between two runs."""
    return float(schedule.run_every.total_seconds())
