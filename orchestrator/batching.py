"""The part of the client that asks many questions at once: batches, line by line, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from orchestrator.accounting import Accounting
from orchestrator.batches import BatchIntake
from orchestrator.diagnosis.batch import with_waits
from orchestrator.diagnosis.pace import batch_too_slow, job_too_slow
from orchestrator.documents.feeding import Feeding
from orchestrator.intake import BatchLine, QuestionInput, Rejected, Submitted
from orchestrator.permits import Permits
from orchestrator.retries.retry import job_or_batch
from shared.jobs import JobStore, State, reachable
from shared.jobs.reader import readable
from shared.models import BatchStatus
from shared.models.batch import BatchPosition, BatchSource, LineRecord, LineReport
from shared.models.cost import Budget


class Batching(Feeding):
    """Batches: opened, filled, closed, looked at and cancelled."""

    _batches: BatchIntake
    _permits: Permits
    _jobs: JobStore

    @contextmanager
    def _own_batch(self, batch_id: str) -> Iterator[None]:
        """As `_own_job`, of one batch."""
        with reachable(self.settings), readable(batch_id, "batch"):
            self._scope.check_batch(batch_id)
            yield

    def submit_many(
        self,
        questions: Iterable[QuestionInput],
        *,
        batch_budget: Budget | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Submitted:
        """Enqueue a batch, streamed. A question that cannot be taken is listed, the rest is enqueued.

        `options` hold for each question; `batch_budget` is what all of them may spend together (`max_calls` ...).
        """
        batch_id = self.open_batch(batch_budget)
        job_ids, rejected = list[str](), list[Rejected]()
        for line in self.add_to_batch(batch_id, questions, **options):
            if line.job_id:
                job_ids.append(line.job_id)
            else:
                rejected.append(Rejected(line=line.line, reason=line.reason or "", text=line.text or ""))
        self.close_batch(batch_id)
        warning = self.too_slow(batch_id)
        return Submitted(batch_id=batch_id, job_ids=tuple(job_ids), rejected=tuple(rejected), warning=warning)

    def open_batch(
        self,
        budget: Budget | Mapping[str, Any] | None = None,
        source: BatchSource | None = None,
        webhook: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> str:
        """An empty batch; `budget`: what its jobs may spend; `source`: for `resume_batch`; `webhook`: told of its end.

        With an `idempotency_key` that was used before: the batch that was opened then, as it is by now.
        Raises: InputError.
        """
        with reachable(self.settings), self._permits.take() as permit:
            permit.batch(batch_id := self._batches.open(budget, source, webhook, idempotency_key))
        return batch_id

    def add_to_batch(self, batch_id: str, questions: Iterable[QuestionInput], **options: Any) -> Iterator[LineRecord]:
        """Enqueue questions behind those of the batch, page by page with flat memory; yields what became of each.

        `options` hold for each question. One that cannot be taken is a rejected line.
        Raises: NotFoundError; BatchCancelledError; BatchFullError when too many jobs wait: what was taken before stays.
        """
        with self._own_batch(batch_id):
            yield from self._batches.add(batch_id, questions, options)

    def read_into_batch(self, batch_id: str, lines: Iterable[BatchLine]) -> Iterator[LineRecord]:
        """The same with the lines of a file, from its first one on (`intake.read_questions`).

        Lines that were entered before, by a client that was killed, are passed over.
        Raises besides: InputError when the lines are not those that were entered before.
        """
        with self._own_batch(batch_id):
            yield from self._batches.read(batch_id, lines)

    def resume_batch(self, batch_id: str) -> BatchPosition:
        """How far a batch was read, and what a client needs that goes on with it. Raises: NotFoundError."""
        with self._own_batch(batch_id):
            return self._jobs.batches.position(batch_id)

    def close_batch(self, batch_id: str) -> None:
        """Note that all lines of a batch have been read."""
        with self._own_batch(batch_id):
            self._jobs.batches.close(batch_id)

    def batch_status(self, batch_id: str) -> BatchStatus:
        """The accounts of a batch. Raises: NotFoundError."""
        with self._own_batch(batch_id):
            return with_waits(self._jobs, self._jobs.batches.status(batch_id))

    def batch_lines(self, batch_id: str) -> Iterator[LineRecord]:
        """Which job answers each line that is not blank, in their order, streamed. Raises: NotFoundError."""
        with self._own_batch(batch_id):
            for page in self._jobs.batches.lines(batch_id):
                yield from page

    def batch_jobs(self, batch_id: str) -> list[str]:
        """The jobs that answer a batch's lines, each once, in the order of the lines. Raises: NotFoundError."""
        return list(dict.fromkeys(line.job_id for line in self.batch_lines(batch_id) if line.job_id))

    def batch_report(self, batch_id: str, numbers: Sequence[int] | None = None) -> Iterator[LineReport]:
        """What became of each line that is not blank, and what it has cost, in their order, streamed.

        `numbers`: of these lines only. Raises: NotFoundError.
        """
        with self._own_batch(batch_id):
            yield from Accounting(self._jobs, self.settings).report(batch_id, numbers)

    def batches(self, limit: int = 20) -> list[BatchStatus]:
        """The newest batches, newest first."""
        with reachable(self.settings):
            return self._jobs.batches.newest(limit, self.tenant)

    def cancel_batch(self, batch_id: str, reason: str = "cancelled by the caller") -> int:
        """End all open jobs of a batch; returns how many. It takes no more lines then. Raises: NotFoundError."""
        with self._own_batch(batch_id):
            self._jobs.batches.cancel(batch_id)
            open_jobs = (job_id for job_id, state in self._jobs.batches.members(batch_id) if not state)
            return self._jobs.endings.stop(open_jobs, State.CANCELLED, reason, unknown=True)

    def too_slow(self, id_: str) -> str | None:
        """A warning that a job, or jobs of a batch, will expire while they wait: the pace of their lane will not do.

        None when it will, or while nobody knows the pace. Raises: NotFoundError.
        """
        with reachable(self.settings):
            ask_job, ask_batch = partial(job_too_slow, self._jobs), partial(batch_too_slow, self._jobs)
            return job_or_batch(id_, ask_job, ask_batch, self._scope)
