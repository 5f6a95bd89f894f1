"""Enqueues jobs: each is taken, or named as refused in the one error that is returned; never both."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import redis
from celery import Celery

from shared.connections.connect import LOST
from shared.errors import LaneFullError
from shared.jobs import JobStore, State
from shared.jobs.admission import EnqueueResult
from shared.models import JobRequest, Lane
from shared.tasks.signatures import Dispatcher

Jobs = Sequence[tuple[str, JobRequest]]
#: Seconds for which a lost connection to Redis is tried again: a submission is known by its id, so it happens once.
SUBMIT_RETRY_S = 8.0
_PAUSE_S = 0.25


class Submitter:
    """Enqueues the jobs of one client in their lanes."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._jobs = jobs
        self._dispatcher = Dispatcher(app, jobs)
        jobs.endings.on_end = self._dispatcher.try_run
        self._unconfirmed: list[str] = []

    def submit(
        self, jobs: Jobs, batch_id: str | None = None, retry_of: Mapping[str, str] | None = None
    ) -> LaneFullError | None:
        """Enqueue all of them, or as many as there is room for: then the error names in `refused` the others.

        `retry_of`: the ended job that each one tries again. Raises: RedisError when it cannot be known whether they
        were taken; those that were are cancelled at the next contact.
        """
        self._cancel_unconfirmed()
        results = self._enqueue(jobs, batch_id, retry_of)
        refused = [job_id for (job_id, _), result in zip(jobs, results, strict=True) if result < EnqueueResult.KNOWN]
        if batch_id and refused:
            self._jobs.batches.forget(batch_id, refused)
        self._dispatcher.try_run()
        if not refused:
            return None
        first = next(result for result in results if result < EnqueueResult.KNOWN)
        return self._lane_full(first, dict(jobs)[refused[0]], refused)

    def _enqueue(self, jobs: Jobs, batch_id: str | None, retry_of: Mapping[str, str] | None) -> list[EnqueueResult]:
        end = time.monotonic() + SUBMIT_RETRY_S
        while True:
            try:
                return self._jobs.enqueue(jobs, batch_id, retry_of)
            except LOST:
                if time.monotonic() >= end:
                    self._unconfirmed += [job_id for job_id, _ in jobs]
                    raise
                time.sleep(_PAUSE_S)

    def _cancel_unconfirmed(self) -> None:
        """Jobs that the caller was told were refused must not run after all."""
        if self._unconfirmed:
            self._jobs.endings.stop(self._unconfirmed, State.CANCELLED, "the caller was told that it was not taken")
            self._unconfirmed = []

    def _lane_full(self, result: EnqueueResult, request: JobRequest, refused: list[str]) -> LaneFullError:
        lane, (most, share) = request.lane, self._jobs.admission.capacity(request.lane)
        setting = f"lanes.max_waiting_{'interactive' if lane is Lane.INTERACTIVE else 'batch'}"
        if result is EnqueueResult.TENANT_FULL:
            why = f"tenant {request.tenant} has {share:,} jobs waiting in the {lane.value} lane, its share of {setting}"
        else:
            why = f"{most:,} jobs wait in the {lane.value} lane, all that {setting} allows"
        return LaneFullError(f"{why}: try again when some have ended, or raise the setting", refused)

    def close(self) -> None:
        """Cancel the unconfirmed jobs, if Redis answers."""
        with suppress(redis.exceptions.RedisError):
            self._cancel_unconfirmed()
