"""Submits jobs that put documents in, and follows them: the job does the work, the client may go.

Where the index pool reads the files of this machine for this user, their names travel; else `hand_over` sends bytes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from celery import Celery
from pydantic import Field

from orchestrator.outage import Outage
from orchestrator.permits import Permits
from orchestrator.submitting import Submitter
from shared.connections.heartbeat import workers
from shared.contract import Queue
from shared.errors import IngestUnderWayError, InputError, NoAnswerError, NotRunningError, RamifyError
from shared.files.walk import checked_root
from shared.jobs import JobReader, JobStore, new_id, reachable
from shared.models import Cost, DocumentOutcome, Filters, JobRequest, JobStatus
from shared.models.base import Model
from shared.models.ingest import HandedOver, IngestReport, IngestRequest, IngestResult
from shared.settings.path_key import reading_place
from shared.tasks.signatures import send_turn
from shared.tasks.task_run import TaskRun
from shared.tenants import checked_name

#: Seconds without any change of an open job after which nobody waits for it any more.
SILENCE_S = 300.0
_POLL_S = 0.15
#: Seconds that a job may take at most.
_LONGEST_S = 86_400
_MOST_SHOWN = 3


class Progress(Model):
    """One step of an ingest: files read so far, of how many, the outcomes that came in, warnings and cost so far.

    `job_id`: the job that does it; `waits`: it is another one, which is at the same files, and is waited for.
    `seconds` since it was submitted; `parts`: seconds of the workers so far, by what
    they did. The last step has the state in which the job has ended, and how many kept answers are `stale` by it.
    """

    job_id: str = ""
    state: str = ""
    waits: bool = False
    read: int
    total: int
    outcomes: tuple[DocumentOutcome, ...] = ()
    passed_over: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cost: Cost = Cost()
    seconds: float = 0.0
    parts: dict[str, float] = Field(default_factory=dict)
    stale: int = 0


@dataclass(frozen=True)
class IngestOptions:
    """What holds for one ingest. Raises: InputError when the namespace is no name, or the deadline no time."""

    tenant: str
    namespace: str = "default"
    prune: bool = False
    deadline_s: float | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        checked_name("namespace", self.namespace)
        if self.deadline_s is not None and not 0 < self.deadline_s <= _LONGEST_S:
            fix = f"give more than 0 and at most {_LONGEST_S} seconds"
            raise InputError("deadline", str(self.deadline_s), fix)


class Ingesting:
    """Submits and follows the ingests of one client. Every method raises NotRunningError when Redis does not answer."""

    def __init__(self, app: Celery, jobs: JobStore, submitter: Submitter, permits: Permits | None = None) -> None:
        self.app, self.jobs, self._permits = app, jobs, permits or Permits()
        self._submitter, self._reader = submitter, JobReader(jobs.client)

    def by_name(self) -> bool:
        """True where every worker of the index queue reads this machine's files for this user."""
        place = reading_place(self.jobs.settings)
        found = [beat for beat in workers(self.jobs.client) if Queue.INDEX.value in beat.queues]
        return bool(place and found) and all(beat.reads == place for beat in found)

    def submit(
        self, by: HandedOver, sources: Sequence[str], options: IngestOptions, changed: Sequence[str] = ()
    ) -> str:
        """Enqueue a job; returns its id.

        Raises: IngestUnderWayError, LaneFullError, RamifyError without the stack's key.
        """
        job_id, deadline_s = new_id(), options.deadline_s or self.jobs.settings.jobs.ingest_deadline_s
        ingest = IngestRequest(by=by, sources=tuple(sources), changed=tuple(changed), prune=options.prune)
        ingest = ingest.model_copy(update={"dry_run": options.dry_run})
        request = JobRequest(
            question=named(sources), tenant=options.tenant, filters=Filters(namespace=options.namespace),
            deadline_s=deadline_s, ingest=ingest,
        )  # fmt: skip
        with self._permits.take() as permit:
            permit.job(submit_ingest(self.jobs, self._submitter, job_id, request))
        return job_id

    def submit_paths(self, paths: Sequence[Path], options: IngestOptions, changed: Sequence[Path] = ()) -> str:
        """The same of files and folders that the index pool reads itself. Raises besides: InputError for a path."""
        roots = list(dict.fromkeys(str(checked_root(path)) for path in paths))
        return self.submit(HandedOver.PATHS, roots, options, [str(path) for path in changed])

    def follow(self, job_id: str, after: str = "0", outage: Outage | None = None) -> Iterator[Progress]:
        """The job's steps from its beginning, or behind the report `after`, to its end, `done`.

        While Redis is unreachable this retries for up to a minute. Raises: RamifyError when it ends otherwise,
        NotRunningError when nothing has changed for SILENCE_S.
        """
        seen_at, changed_at, outage = 0.0, time.monotonic(), outage or Outage()
        while True:
            try:
                with reachable(self.jobs.settings):
                    status = self._reader.status(job_id)
                    found = self.jobs.ingests.reports(job_id, after, 0.0 if status.terminal else _POLL_S)
            except NotRunningError as error:
                outage.pause(error)
                continue
            outage.reset()
            if found or status.updated_at != seen_at:
                changed_at, seen_at = time.monotonic(), status.updated_at
            after = found[-1][0] if found else after
            if found or not status.terminal:
                yield progress(status, [report for _, report in found])
            elif status.state != "done":
                raise RamifyError(f"the ingest stopped: job {job_id} is {status.state}: {status.error or 'no reason'}")
            else:
                yield progress(status, [])
                return
            if time.monotonic() - changed_at > SILENCE_S:
                raise NotRunningError(
                    f"job {job_id} has not gone on for {SILENCE_S:.0f} s; it goes on when it can: `ramify why {job_id}`"
                )

    def wait_for(self, other: IngestUnderWayError) -> Iterator[Progress]:
        """The steps of an ingest that is at the same files, without what it tells of documents, until it has ended."""
        try:
            for step in self.follow(other.job_id):
                yield step.model_copy(update={"waits": True, "outcomes": (), "passed_over": (), "warnings": ()})
        except NotRunningError:
            raise
        except RamifyError:
            return  # it has failed, or is gone: so it is not at them any more

    def result(self, job_id: str) -> IngestResult:
        """How far an ingest is, or how it ended. Raises: NotFoundError, NoAnswerError for a job of another kind."""
        status = self._reader.status(job_id)
        job = self.jobs.job(job_id)
        if status.ingest is None or job is None or job.request.ingest is None:
            raise NoAnswerError(f"job {job_id} is a question: `ramify result {job_id}` shows its answer", terminal=True)
        return IngestResult(
            job_id=job_id, state=status.state, sources=job.request.ingest.sources,
            namespace=job.request.filters.namespace, error=status.error, partial=status.partial, counts=status.ingest,
            failures=self.jobs.ingests.failures(job_id), passed_over=self.jobs.ingests.passed_over(job_id),
            warnings=status.warnings,
            cost=status.cost, seconds=seconds_of(status),
        )  # fmt: skip


def submit_ingest(jobs: JobStore, submitter: Submitter, job_id: str, request: JobRequest) -> str:
    """Enqueue a request under this id, sealed, its roots claimed. Raises: InputError, LaneFullError, RamifyError."""
    request = jobs.ingests.sealed(job_id, request)
    if request.ingest is not None and request.ingest.sources[0].startswith("/"):
        jobs.ingests.claim_roots(job_id, request)
    _, full = submitter.submit([(job_id, request)])
    if full:
        jobs.ingests.release_roots(job_id)
        raise full
    return job_id


def plan_ingest(run: TaskRun, app: Celery) -> bool:
    """Begin a job that puts documents in; False for any other. It has no plan: its first item finds the others."""
    job = run.job
    if job.request.ingest is None:
        return False
    send_turn(app, job.id, job.rank, run.jobs.ingests.start(job.id, job.request.ingest, job.retry_of))
    return True


def progress(status: JobStatus, reports: Sequence[IngestReport]) -> Progress:
    """One step, of what a job's hash says and the reports that have come."""
    counts = status.ingest
    return Progress(
        job_id=status.job_id,
        state=status.state,
        read=counts.read if counts else 0,
        total=counts.files if counts else 0,
        outcomes=tuple(outcome for report in reports for outcome in report.outcomes),
        passed_over=tuple(sentence for report in reports for sentence in report.passed_over),
        warnings=status.warnings if status.terminal else (),
        cost=status.cost,
        seconds=seconds_of(status),
        parts=counts.parts if counts else {},
        stale=counts.stale if counts else 0,
    )


def seconds_of(status: JobStatus) -> float:
    """Seconds from a job's submission to its end, or to now."""
    return max(0.0, (status.finished_at or time.time()) - status.created_at)


def named(sources: Sequence[str]) -> str:
    """What a job that puts documents in is shown as, where others show their question."""
    shown = ", ".join(sources[:_MOST_SHOWN])
    more = f" and {len(sources) - _MOST_SHOWN} more" if len(sources) > _MOST_SHOWN else ""
    return f"ingest {shown}{more}"[:1000]
