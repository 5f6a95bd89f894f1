"""What is done about jobs after they were submitted: lists, batches, why, cancel, retry, dead letters (A6, G10)."""

from __future__ import annotations

from celery import Celery
from redis import Redis

from orchestrator.explaining import why_batch, why_job
from orchestrator.letters import Letters
from orchestrator.retrying import Retried, Retrying, unknown
from orchestrator.submitting import Submitter
from shared.errors import NotFoundError
from shared.job_store import JobReader, JobStore, State, reachable
from shared.models import BatchStatus, JobStatus
from shared.models.why import BatchWhy, Why
from shared.settings import Settings


class Aftercare:
    """Half of `Ramify`; every method raises NotRunningError when Redis does not answer."""

    settings: Settings
    _redis: Redis
    _app: Celery
    _jobs: JobStore
    _reader: JobReader
    _submitter: Submitter

    def batch_status(self, batch_id: str, *, reconcile: bool = True) -> BatchStatus:
        """The counts of a batch. Raises: NotFoundError."""
        with reachable(self.settings):
            if reconcile:
                self._jobs.batches.reconcile(batch_id)
            return self._jobs.batches.status(batch_id)

    def batch_jobs(self, batch_id: str) -> list[str]:
        """The job ids of a batch, in order of submission. Raises: NotFoundError."""
        with reachable(self.settings):
            return sorted(job_id for job_id, _ in self._jobs.batches.members(batch_id))

    def jobs(self, limit: int = 20) -> list[JobStatus]:
        """The newest jobs, newest first."""
        with reachable(self.settings):
            return self._reader.recent(limit)

    def cancel(self, job_id: str, state: State = State.CANCELLED, reason: str = "cancelled by the caller") -> bool:
        """End a job and keep its leaves from running. False when it had ended before. Raises: NotFoundError."""
        with reachable(self.settings):
            job = self._jobs.job(job_id)
            if job is None:
                self._reader.status(job_id)  # says what is wrong
                return False
            return self._jobs.stop(job, state, reason)

    def cancel_batch(self, batch_id: str, reason: str = "cancelled by the caller") -> int:
        """End all open jobs of a batch; returns how many. Raises: NotFoundError."""
        with reachable(self.settings):
            still = (job_id for job_id, state in self._jobs.batches.members(batch_id) if not state)
            return self._jobs.endings.stop(still, State.CANCELLED, reason)

    def why(self, id_: str) -> Why | BatchWhy:
        """What a job or a batch waits for, or how it ended; takes milliseconds. Raises: NotFoundError."""
        with reachable(self.settings):
            try:
                return why_job(self._app, self._jobs, id_)
            except NotFoundError:
                pass
            try:
                return why_batch(self._jobs, id_)
            except NotFoundError:
                raise unknown(id_) from None

    def retry(self, id_: str, tenant: str | None = None) -> Retried:
        """Try an ended job, or the jobs of an ended batch, again: what is missing runs, under a new id (A6).

        `tenant`: whose it must be, None: anybody's. Raises: NotFoundError, InputError when there is nothing to try
        again (yet), LaneFullError.
        """
        retrying = Retrying(self._jobs, self._submitter)
        with reachable(self.settings):
            made = retrying.job(id_, tenant)
            if made is not None:
                return made
            try:
                return retrying.batch(id_, tenant)
            except NotFoundError:
                raise unknown(id_) from None

    @property
    def dead(self) -> Letters:
        """The dead letters: `list`, `get`, `replay`, `drop` (A5, G10)."""
        return Letters(self._app, self._jobs, Retrying(self._jobs, self._submitter))
