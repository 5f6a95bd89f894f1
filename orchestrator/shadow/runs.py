"""Shadow runs (E7): answered questions are asked again with another strategy, unseen, when there is nothing else to do.

Runs on the ops pool, sent by beat every second. A run is a job like any other, in the batch lane, but on no list; when
it has ended, both answers are compared and the run is deleted. It shares nothing with the live job but its question.
"""

from __future__ import annotations

import logging
import time

from celery import Celery
from kombu.exceptions import OperationalError

from orchestrator.shadow.trial import comparison, tried, unfit
from shared.contract import Message, TaskName, priority
from shared.job_store import Job, JobReader, JobStore, State
from shared.job_store.ab import AbStore
from shared.job_store.keys import shadow_id
from shared.models import JobStatus
from shared.models.ab import OpenRun
from shared.settings import Settings
from shared.signatures import step

log = logging.getLogger("ramify.shadow")
#: Seconds past its deadline after which a run that has not ended is given up; the reaper ends it before.
_GRACE_S = 90.0
#: Jobs on offer that one look may pass over.
_LOOKS = 50


class Shadows:
    """Looks after the runs of one job store."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._app, self._jobs = app, jobs
        self._settings: Settings = jobs.settings
        self._ab, self._reader = AbStore(jobs.client, jobs.settings), JobReader(jobs.client)

    def run(self) -> None:
        """Settle the runs that have ended, start what may start. Only one looks at a time."""
        lock = self._ab.only_one()
        if not lock.acquire():
            return
        try:
            self._ab.announce()
            still = [run_id for run_id, run in self._ab.open_runs().items() if not self._settled(run_id, run)]
            self._start(len(still))
        finally:
            if lock.owned():
                lock.release()

    # -- start -------------------------------------------------------------------------------------------------

    def _start(self, running: int) -> None:
        for _ in range(_LOOKS):
            if not self._may_start(running):
                return
            job_id = self._ab.take()
            if job_id is None:
                return
            job, answer = self._jobs.job(job_id), self._reader.answer(job_id)
            if job is None or answer is None:
                self._ab.count("skipped: expired")
            elif (reason := unfit(job, answer, self._settings.shadow.strategy)) is not None:
                self._ab.count(f"skipped: {reason}")
            elif self._ab.may_start():
                running += self._begin(job)

    def _may_start(self, running: int) -> bool:
        """True while nobody waits for anything, and the limits allow it."""
        shadow = self._settings.shadow
        idle = self._ab.live_jobs(running) < shadow.idle_below and self._ab.quiet_for() >= shadow.quiet_s
        return idle and running < shadow.max_open and not self._ab.minute_is_full()

    def _begin(self, job: Job) -> int:
        """1 when its run is on its way."""
        run_id, request = shadow_id(), tried(job.request, self._settings)
        self._ab.begin(run_id, OpenRun(job_id=job.id, began=time.time()))
        self._jobs.create([(run_id, request)])
        try:
            step(self._app, TaskName.PLAN_JOB, Message(job_id=run_id), priority(request.lane)).apply_async()
        except OperationalError as error:
            log.warning("a shadow run could not be sent: %s", type(error).__name__)
            give_up(self._jobs, run_id, "failed: not sent")
            return 0
        return 1

    # -- settle ------------------------------------------------------------------------------------------------

    def _settled(self, run_id: str, run: OpenRun) -> bool:
        """True when the run is over, one way or another."""
        found = self._reader.statuses([run_id])
        if not found:
            self._ab.settle(run_id, "failed: lost")
            return True
        status = found[0]
        if status.terminal:
            self._compare(run_id, run, status)
        elif time.time() > run.began + self._settings.shadow.deadline_s + _GRACE_S:
            give_up(self._jobs, run_id, "failed: too late")
        else:
            return False
        return True

    def _compare(self, run_id: str, run: OpenRun, status: JobStatus) -> None:
        live, shadow, job = self._reader.answer(run.job_id), self._reader.answer(run_id), self._jobs.job(run.job_id)
        if shadow is None:
            self._ab.settle(run_id, f"failed: {status.state}")
        elif shadow.partial:
            self._ab.settle(run_id, "failed: partial")
        elif live is None or job is None:
            self._ab.settle(run_id, "skipped: expired")
        else:
            compared = comparison(job, live, shadow, self._settings)
            self._ab.settle(run_id, "compared", compared)


def give_up(jobs: JobStore, run_id: str, name: str) -> None:
    """End a run that nobody waits for any more, and count it under `name`."""
    job = jobs.job(run_id)
    if job is not None:
        jobs.stop(job, State.CANCELLED, name)
    AbStore(jobs.client, jobs.settings).settle(run_id, name)
