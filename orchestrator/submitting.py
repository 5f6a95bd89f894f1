"""Enqueues jobs and lines of batches: each job is taken, or named as refused; never both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

import redis
from celery import Celery

from orchestrator.diagnosis.settings import RunningSettings
from orchestrator.intake import check_prices
from orchestrator.webhooks.endpoints import Webhooks
from shared.connections.connect import LOST
from shared.errors import InputError, LaneFullError
from shared.jobs import JobStore, State
from shared.jobs.admission import KEY_TAKEN, EnqueueResult
from shared.jobs.budget import with_default_budget
from shared.jobs.lines import Page
from shared.models import JobRequest
from shared.models.batch import LineRecord
from shared.settings.strategies import named
from shared.tasks.signatures import Dispatcher
from shared.tracing.protocols import TraceSpan
from shared.tracing.spans import contents, of_job, span

Jobs = Sequence[tuple[str, JobRequest]]
#: Seconds for which a lost connection to Redis is tried again: a submission is known by its id, so it happens once.
SUBMIT_RETRY_S = 8.0
_PAUSE_S = 0.25
#: Seconds between two admissions after cancels.
_LET_IN_S = 2.0
T = TypeVar("T")


class Submitter:
    """Enqueues the jobs of one client in their lanes."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._jobs = jobs
        self.running = RunningSettings(jobs.client, jobs.settings)
        self._dispatcher = Dispatcher(app, jobs)
        jobs.endings.on_end = self._let_in
        self._let_in_at = -_LET_IN_S
        self._unconfirmed: list[str] = []

    def checked(self, request: JobRequest) -> JobRequest:
        """The request. Raises: InputError for what the settings do not allow.

        That is an unknown strategy, a cost limit where a price is missing, and a webhook that may not be called. A
        strategy has to be known here and in the pools that run.
        """
        settings = self._jobs.settings
        if request.strategy is not None:
            self.running.check_strategy(request.strategy)
            named(settings.strategies, request.strategy)
        check_prices(with_default_budget(request, settings), settings)
        if request.webhook is not None:
            Webhooks(self._jobs.client, settings, request.tenant).check_named(request.webhook)
        return request

    def submit(self, jobs: Jobs, retry_of: Mapping[str, str] | None = None) -> tuple[list[str], LaneFullError | None]:
        """Enqueue all of them, or as many as there is room for: then the error names in `refused` the others.

        Returns the ids of the jobs: that of the first one where an idempotency key was used before. `retry_of`: the
        ended job that each one tries again. Raises: InputError for a key that was used before with another request,
        RedisError when it cannot be known whether they were taken; those
        that were are cancelled at the next contact.
        """
        self._cancel_unconfirmed()
        with _traced(jobs):
            try:
                results = _retried(lambda: self._jobs.enqueue(jobs, retry_of))
            except LOST:
                self._unconfirmed += [job_id for job_id, _ in jobs]
                raise
            self._dispatcher.try_run()
        for (_, request), one in zip(jobs, results, strict=True):
            if one.result is EnqueueResult.OTHER_REQUEST:
                raise InputError("idempotency_key", request.idempotency_key, f"it {KEY_TAKEN} (its job: {one.job_id})")
        job_ids = [one.job_id for one in results]
        refused = [place for place, one in enumerate(results) if one.result < EnqueueResult.KNOWN]
        if not refused:
            return job_ids, None
        first = jobs[refused[0]][1]
        why = self._jobs.admission.refusal(results[refused[0]].result, first.lane, first.tenant)
        return job_ids, LaneFullError(why, [job_ids[place] for place in refused])

    def enter(self, batch_id: str, page: Page) -> list[LineRecord]:
        """Enter lines of a batch. What the records say holds also when this was cut off and is done again.

        Raises: NotFoundError, BatchCancelledError, InputError when another client adds lines to it, RedisError.
        """
        return self.send(batch_id, page)()

    def send(self, batch_id: str, page: Page) -> Callable[[], list[LineRecord]]:
        """As `enter`: what is returned waits until they are entered, and has to be called."""
        entered = self._jobs.batches.send(batch_id, page)

        def wait() -> list[LineRecord]:
            try:
                found = entered()
            except LOST:
                found = _retried(lambda: self._jobs.batches.enter(batch_id, page))
            self._dispatcher.try_run()
            return found

        return wait

    def _let_in(self) -> None:
        """After a cancel: let waiting jobs in, as far as there is room.

        Of many cancels in a row only the first one does it: what it lets in may be cancelled next, and each admission
        sends a message. The reaper lets in the others.
        """
        now = time.monotonic()
        if now - self._let_in_at >= _LET_IN_S:
            self._let_in_at = now
            self._dispatcher.try_run()

    def _cancel_unconfirmed(self) -> None:
        """Jobs that the caller was told were refused must not run after all."""
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        if not unconfirmed:
            return
        try:
            self._jobs.endings.stop(unconfirmed, State.CANCELLED, "the caller was told that it was not taken")
        except redis.exceptions.RedisError:
            self._unconfirmed = [*unconfirmed, *self._unconfirmed]
            raise

    def close(self) -> None:
        """Cancel the unconfirmed jobs, if Redis answers."""
        with suppress(redis.exceptions.RedisError):
            self._cancel_unconfirmed()


def _traced(jobs: Jobs) -> AbstractContextManager[TraceSpan]:
    """The span of a submission: of one job it is the first of its trace."""
    if len(jobs) != 1:
        return span("submit jobs", attributes={"ramify.jobs": len(jobs)})
    ((job_id, request),) = jobs
    told = {**of_job(job_id, tenant=request.tenant, lane=request.lane.value), **contents(question=request.question)}
    return span("submit", "producer", job_id=job_id, attributes=told)


def _retried(call: Callable[[], T]) -> T:
    """Its result, tried again for SUBMIT_RETRY_S while the connection is lost."""
    end = time.monotonic() + SUBMIT_RETRY_S
    while True:
        try:
            return call()
        except LOST:
            if time.monotonic() >= end:
                raise
            time.sleep(_PAUSE_S)
