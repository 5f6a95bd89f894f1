"""Which jobs a run of the reaper reads: what nobody can have lost since it was read last is left for the next one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

#: Seconds between two looks at a job: as long as a message may be on its way anyway (`rules.ON_ITS_WAY_S`), and longer
#: at one that only waits for its turn.
UNDER_WAY_S, WAITING_S = 4.0, 10.0
#: Seconds behind a worker's death in which every job is read in every run.
_ALARM_S = 10.0
#: Less than the shortest time between two runs, which are not evenly apart.
_SLACK_S = 1.0


class Looks:
    """One reaper's memory of when it read which job. A new one reads all of them in its first run."""

    def __init__(self, every: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        """`every`: read every job in every run."""
        self._every, self._clock = every, clock
        self._at: dict[str, float] = {}
        self._living: frozenset[str] | None = None
        self._alarm_until = 0.0

    def wanted(
        self, due: Iterable[str], under_way: Collection[str], others: Iterable[str], living: frozenset[str]
    ) -> list[str]:
        """The jobs to read now. `due`: their time has come; `living`: the workers that live now.

        When one of the workers that lived before is gone, work may be lost everywhere: then all are read.
        """
        now = self._clock()
        if self._living is None or self._living - living:
            self._alarm_until = now + _ALARM_S
        self._living = living
        whole = self._every or now < self._alarm_until
        found = dict.fromkeys(due)
        for job_id in under_way:
            if whole or now - self._at.setdefault(job_id, now) >= UNDER_WAY_S - _SLACK_S:
                found[job_id] = None
        for job_id in others:
            if job_id not in under_way and (whole or now - self._at.get(job_id, -WAITING_S) >= WAITING_S - _SLACK_S):
                found[job_id] = None
        self._at = {job_id: at for job_id, at in self._at.items() if job_id in under_way or now - at < WAITING_S}
        self._at |= dict.fromkeys(found, now)
        return list(found)
