"""Runs again what changed documents have touched of kept answers: only these leaves, and what follows from them.

A refresh is a retry of an answer that is complete: a job of its own, that takes the other leaves over from the old one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from orchestrator.retries.retry import Retried, Retrying, pages
from orchestrator.submitting import Submitter
from shared.errors import ConflictError
from shared.jobs import JobReader, JobStore, State, new_id
from shared.jobs.endings import Again, EndedJob
from shared.jobs.stale import StaleAnswers
from shared.jobs.tenant_scope import no_such_job
from shared.models import BatchStatus, JobRequest, JobStatus
from shared.models.batch import BatchSource, LineKind, LineRecord

#: Refreshes of refreshes that are followed to the newest one.
_MAX_CHAIN = 64
#: Stale answers that one call looks at.
MOST = 100_000
STALE_ANSWERS = "stale answers"


class Refreshing(Retrying):
    """Makes the new jobs. Of an answer that was refreshed before, the newest one is meant."""

    command = "refresh"

    def __init__(self, jobs: JobStore, submitter: Submitter, changes: Mapping[str, object] | None = None) -> None:
        super().__init__(jobs, submitter, changes, Again.STALE)
        self._reader = JobReader(jobs.client)
        self._stale = StaleAnswers(jobs.client, jobs.settings, jobs.clock)

    def job(self, job_id: str, tenant: str | None = None) -> Retried:
        """A new job for a stale answer.

        Raises: NotFoundError, InputError where nothing has changed or it is refreshed already, LaneFullError.
        """
        return super().job(self.newest([job_id])[job_id], tenant)

    def of_tenant(self, tenant: str) -> Retried:
        """A new batch of all stale answers of a tenant. Raises: InputError where there is none, LaneFullError."""

        def opened(new: str) -> None:
            self._jobs.batches.open(new, None, BatchSource(name=STALE_ANSWERS), tenant=tenant)

        made = self._filled(new_id(), opened, self._stale_of(tenant), "--stale")
        if made is None:
            raise ConflictError("stale answers", tenant, "no answer is stale, or all that are so are refreshed already")
        return made

    def stale(self, tenant: str) -> Iterator[str]:
        """Ids of the tenant's stale answers, of each chain the newest; what is gone is taken off the list."""
        for page in pages(self._stale.of_tenant(tenant, MOST)):
            newest = self.newest(page)
            found = self._jobs.retries.read(newest.values())
            gone = [one for one, last in newest.items() if one != last or last not in found or not found[last].stale]
            self._stale.forget(tenant, gone)
            yield from (one for one in page if one not in set(gone))

    def job_under_way(self, job_id: str) -> list[Retried]:
        """The refresh of an answer that has not ended. Raises: NotFoundError."""
        if job_id not in self._jobs.retries.read([job_id]):
            raise no_such_job(job_id)
        return [Retried(job_id=new.job_id, retry_of=job_id) for new in self._under_way([job_id])]

    def batch_under_way(self, batch_id: str) -> list[Retried]:
        """The refreshes of a batch's answers that have not ended. Raises: NotFoundError."""
        lines = (line for page in self._jobs.batches.lines(batch_id) for line in page)
        found = self._under_way(line.job_id for line in lines if line.job_id and line.kind is not LineKind.DUPLICATE)
        return _by_batch(batch_id, found)

    def tenant_under_way(self, tenant: str) -> list[Retried]:
        """Those of all stale answers of a tenant."""
        return _by_batch("--stale", self._under_way(self.stale(tenant)))

    def _under_way(self, job_ids: Iterable[str]) -> Iterator[JobStatus]:
        """The open jobs that refresh these answers."""
        for page in pages(job_ids):
            olds = self._jobs.retries.read(set(self.newest(page).values()))
            newer = self._newer([old for old in olds.values() if self._wanted(old)])
            yield from self._reader.statuses([new.job_id for new in newer.values() if new.open])

    def _stale_of(self, tenant: str) -> Iterator[tuple[LineRecord, EndedJob, JobRequest]]:
        number = 0
        for page in pages(self.stale(tenant)):
            lines = [LineRecord(line=number + at, kind=LineKind.ENQUEUED, job_id=one) for at, one in enumerate(page, 1)]
            number += len(page)
            yield from self._to_refresh(lines)

    def _unanswered(self, batch_id: str) -> Iterator[tuple[LineRecord, EndedJob, JobRequest]]:
        for page in self._jobs.batches.lines(batch_id):
            yield from self._to_refresh([line for line in page if line.kind is not LineKind.DUPLICATE])

    def _to_refresh(self, lines: Sequence[LineRecord]) -> Iterator[tuple[LineRecord, EndedJob, JobRequest]]:
        """Of each line the newest answer, where that is stale and not refreshed now."""
        newest = self.newest([line.job_id for line in lines if line.job_id])
        of_line = {newest[line.job_id]: line for line in lines if line.job_id}
        olds = {old.job_id: old for old in self._jobs.retries.read(of_line).values() if self._wanted(old)}
        newer = self._newer(list(olds.values()))
        for job_id, old in olds.items():
            again, request = newer.get(job_id), self._request(old)
            if request is not None and (again is None or not again.open):
                yield of_line[job_id], old, request

    def newest(self, job_ids: Collection[str]) -> dict[str, str]:
        """Each of these jobs -> the last one of its chain that has an answer; itself where nothing follows it."""
        last = {job_id: job_id for job_id in job_ids}
        for _ in range(_MAX_CHAIN):
            olds = self._jobs.retries.read(set(last.values()))
            newer = {one: new.job_id for one, new in self._newer(list(olds.values())).items() if new.complete}
            if not newer:
                break
            last = {job_id: newer.get(one, one) for job_id, one in last.items()}
        return last

    def _wanted(self, old: EndedJob) -> bool:
        return old.state is State.DONE and old.stale

    def _unwanted(self, old: EndedJob) -> str:
        if old.state is not State.DONE:
            return f"it ended {old.state.value}, without an answer: `ramify retry {old.job_id}`"
        return f"nothing that its answer rests on has changed since: `ramify result {old.job_id}` shows it"

    def _nothing_left(self, status: BatchStatus) -> str:
        newest = f": `ramify why {status.retried_as}` says how far that is" if status.retried_as else ""
        return f"none of its answers is stale, or all that are so are refreshed already{newest}"


def _by_batch(of: str, statuses: Iterable[JobStatus]) -> list[Retried]:
    """The batches that these jobs stand in, and the jobs that stand in none, each once."""
    batches, alone = dict[str, int](), list[Retried]()
    for status in statuses:
        if status.batch_id:
            batches[status.batch_id] = batches.get(status.batch_id, 0) + 1
        else:
            alone.append(Retried(job_id=status.job_id, retry_of=of))
    return [*(Retried(batch_id=one, retry_of=of, jobs=count) for one, count in batches.items()), *alone]
