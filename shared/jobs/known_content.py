"""What a process knows to stand in the keys of a job: it need not be sent there again."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

#: Jobs that are remembered, those used last.
_MOST_JOBS = 128


class KnownContent:
    """By job: names of chunks and sentences of warnings. Forgetting costs only that they are sent once more."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, set[str]] = OrderedDict()
        self._lock = Lock()

    def of(self, job_id: str) -> set[str]:
        """Of one job, to be read and added to; threads may share it."""
        with self._lock:
            found = self._jobs.setdefault(job_id, set())
            self._jobs.move_to_end(job_id)
            if len(self._jobs) > _MOST_JOBS:
                self._jobs.popitem(last=False)
        return found

    def forget(self, job_id: str) -> None:
        """A Redis that failed may have lost what stood there."""
        with self._lock:
            self._jobs.pop(job_id, None)
