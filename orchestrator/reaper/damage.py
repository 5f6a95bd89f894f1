"""Jobs that cannot be read: sets them aside, so that they cost the others nothing, and ends those that nobody can."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.errors import DamagedError, shown
from shared.jobs import JobStore, State
from shared.jobs.damaged import SetAside
from shared.jobs.fields import damage
from shared.models import Lane

log = logging.getLogger("ramify.reaper")
#: Seconds between two looks at a job that is set aside: somebody may have mended it.
LOOK_AGAIN_S = 60.0
#: Seconds after which it fails, unless a newer release may have written it so.
GIVE_UP_S = 60.0


class DamageGuard:
    """Keeps the damaged jobs of one run of the reaper apart. May raise redis.exceptions.RedisError."""

    def __init__(self, jobs: JobStore) -> None:
        self._jobs = jobs
        self._aside = frozenset(jobs.damaged.ids())
        self._seen = set[str]()
        self._damaged = dict[str, DamagedError]()

    def seen(self, job_ids: Iterable[str], damaged: Mapping[str, DamagedError]) -> None:
        """These jobs were looked at, and those in `damaged` could not be read."""
        self._seen.update(job_ids)
        self._damaged.update(damaged)

    def goes_on(self, job_id: str) -> bool:
        """False for a job that is set aside and that its tasks cannot read yet, though the reaper can."""
        if job_id in self._aside:
            with self.around(job_id):
                self._jobs.job(job_id)
        return job_id not in self._damaged

    @contextmanager
    def around(self, job_id: str) -> Iterator[None]:
        """An error in the block costs this job alone, unless it says that Redis or the broker is lost."""
        try:
            yield
        except Exception as error:
            found = damage(error)
            if found is None and isinstance(error, RedisError | OperationalError):
                raise
            if found is None:
                log.exception("job %s could not be checked", job_id)
                found = DamagedError(f"the reaper fails at it ({type(error).__name__}: {shown(str(error))})")
            self._damaged[job_id] = found

    def look_later(self) -> None:
        """The next look at the damaged jobs is some time from now."""
        self._jobs.next_check(dict.fromkeys(self._damaged, self._jobs.clock.now() + LOOK_AGAIN_S))

    def finish(self, under_way: Mapping[str, tuple[Lane, str]]) -> None:
        """Set the damaged jobs aside, and take back those that can be read again, have ended, or are gone.

        They give their places back: kept, sixty-four of them would close a lane. A job that can be read again is
        readmitted like any other that is not under way though it should be.
        """
        self._jobs.damaged.remove(self._aside & self._seen.difference(self._damaged))
        self._jobs.damaged.remove(self._jobs.unwatched(sorted(self._aside - self._seen)))
        now = self._jobs.clock.now()
        for job_id, error in self._damaged.items():
            found = self._jobs.damaged.add(job_id, error)
            if place := under_way.get(job_id):
                self._jobs.admission.leave(job_id, *place, leaves=0)
            if found.news:
                log.warning("job %s cannot be read and is set aside: %s", job_id, found.reason)
            elif not found.newer and now - found.since > GIVE_UP_S:
                self._give_up(job_id, found)

    def _give_up(self, job_id: str, found: SetAside) -> None:
        reason = f"what is stored of the job cannot be read: {found.reason}"
        if self._jobs.endings.stop([job_id], State.FAILED, reason, unknown=True):
            self._jobs.damaged.remove([job_id])
