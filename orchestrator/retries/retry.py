"""Tries again what has ended without a complete answer: as new jobs, since an end is an end.

Only from here does a job get its `retry_of`: a request cannot name one, so nobody takes over another tenant's leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from pydantic import ValidationError

from orchestrator.intake import as_request
from orchestrator.retries.taken_over import TakenOver, taken_over
from orchestrator.submitting import Submitter
from shared.errors import BatchCancelledError, ConflictError, LaneFullError, NotFoundError, RamifyError
from shared.jobs import JobStore, State, new_id
from shared.jobs.endings import Again, EndedJob
from shared.jobs.keys import id_time
from shared.jobs.lines import NewLine, Page
from shared.jobs.tenant_scope import TenantScope, no_such_job
from shared.models import BatchStatus, JobRequest
from shared.models.base import Model
from shared.models.batch import BatchSource, LineKind, LineRecord
from shared.models.cost import Budget
from shared.providers.metering import money_of

_PAGE = 200
#: Seconds between a claim and the new job, at most: a claim that is older was left by a client that ended.
_CLAIMED_S = 30.0
T = TypeVar("T")
U = TypeVar("U")


class Retried(Model):
    """What a retry has made: a job, or a batch of `jobs` jobs. `retry_of` is the old one.

    `taken_over` is not done again, and not paid again: `saved_cost` in money, None where a price is not known.
    `degraded`: complete answers that were made without something, that this retry leaves as they are, and that no other
    one has tried again.
    """

    retry_of: str
    job_id: str | None = None
    batch_id: str | None = None
    jobs: int = 1
    taken_over: TakenOver = TakenOver()
    saved_cost: float | None = None
    currency: str = ""
    degraded: int = 0


@dataclass(frozen=True)
class _Claim:
    """The right to try a job again: its new id, the link that stood there before, the request."""

    new: str
    before: str
    request: JobRequest


def checked_changes(given: Mapping[str, object]) -> dict[str, object]:
    """What was given for the new jobs and is not None, by field of the request. Raises: InputError."""
    changes = {name: value for name, value in given.items() if value is not None}
    checked = as_request("?", changes)
    return {name: getattr(checked, name) for name in changes}


class Retrying:
    """Makes the new jobs, with `changes` of the old ones' requests (fields).

    `again`: what of the old ones runs again.
    Every method may raise redis.exceptions.RedisError.
    """

    #: What a person calls to try the rest.
    command = "retry"

    def __init__(
        self,
        jobs: JobStore,
        submitter: Submitter,
        changes: Mapping[str, object] | None = None,
        again: Again = Again.MISSING,
    ) -> None:
        self._jobs, self._submitter, self._changes = jobs, submitter, dict(changes or {})
        self._again = again

    def job(self, job_id: str, tenant: str | None = None) -> Retried:
        """A new job for an ended one.

        Raises: NotFoundError when there is none, or it is not of `tenant` (None: any), InputError when there is nothing
        to try again (yet), LaneFullError.
        """
        old = self._jobs.retries.read([job_id]).get(job_id)
        if old is None or tenant not in {None, old.tenant}:
            raise no_such_job(job_id)
        self._check(old)
        request = self._request(old)
        if request is None:
            raise RamifyError(f"the request of job {job_id} cannot be read: ask the question again")
        claim = _Claim(new_id(), old.retried_as, request)
        if request.ingest is not None:
            claim = replace(claim, request=self._jobs.ingests.again(claim.new, job_id, request))
        if not self._jobs.retries.claim({job_id: (claim.new, claim.before)}, self._again):
            raise _already_retried(job_id, job_id)
        _, full = self._submitter.submit([(claim.new, claim.request)], {claim.new: job_id})
        self._settle({job_id: claim}, [] if full else [job_id])
        if full:
            raise full
        return self._made(Retried(job_id=claim.new, retry_of=job_id), self._taken_over([job_id]))

    def _taken_over(self, job_ids: Iterable[str]) -> TakenOver:
        """What the retries of these jobs need not do again."""
        return sum(taken_over(self._jobs, job_ids, self._again).values(), TakenOver())

    def _made(self, made: Retried, over: TakenOver) -> Retried:
        """With what is saved."""
        money, currency = money_of(over.saved, self._jobs.settings), self._jobs.settings.prices.currency
        return made.model_copy(update={"taken_over": over, "saved_cost": money, "currency": currency})

    def _settle(self, claimed: Mapping[str, _Claim], taken: Sequence[str]) -> None:
        """Tell the old jobs that were taken of their new ones, and take back the links of the others."""
        refused = {old: (claim.before, claim.new) for old, claim in claimed.items() if old not in taken}
        self._jobs.retries.claim(refused)
        self._jobs.retries.announce({claimed[old].new: old for old in taken})

    def _check(self, old: EndedJob) -> None:
        if old.open:
            fix = f"it is still {old.state.value}: wait for its end, or `ramify cancel {old.job_id}` it first"
            raise ConflictError("job id", old.job_id, fix)
        newer = self._newer([old]).get(old.job_id)
        if newer and newer.open:
            raise _already_retried(old.job_id, newer.job_id)
        if newer and newer.complete:
            show = f"retry --degraded {newer.job_id}" if newer.degraded else f"result {newer.job_id}"
            fix = f"its retry has answered{', degraded' if newer.degraded else ''}: `ramify {show}`"
            raise ConflictError("job id", old.job_id, fix)
        if not self._wanted(old):
            raise ConflictError("job id", old.job_id, self._unwanted(old))

    def _wanted(self, old: EndedJob) -> bool:
        """Whether this retry is for such a job."""
        return (old.state is State.DONE and bool(old.degraded)) if self._again is Again.DEGRADED else not old.complete

    def _unwanted(self, old: EndedJob) -> str:
        """Why not, as a sentence."""
        if old.state is not State.DONE:
            return f"it ended {old.state.value}, without an answer that could be repaired: `ramify retry {old.job_id}`"
        if self._again is Again.DEGRADED:
            return f"nothing was left out of its answer: `ramify result {old.job_id}` shows it"
        if old.degraded:
            return f"it is complete, but degraded ({old.degraded}): `ramify retry --degraded {old.job_id}` repairs it"
        return f"it is done and complete: `ramify result {old.job_id}` shows it"

    def _newer(self, olds: list[EndedJob]) -> Mapping[str, EndedJob]:
        """Old job id -> its newest retry, where that is not gone. One that was just claimed counts as open."""
        links = {old.retried_as: old for old in olds if old.retried_as}
        found = self._jobs.retries.read(links)
        fresh = self._jobs.clock.now() - _CLAIMED_S
        claimed = {
            new: replace(old, job_id=new, state=State.QUEUED)
            for new, old in links.items()
            if new not in found and id_time(new) > fresh
        }
        return {links[new].job_id: newer for new, newer in {**found, **claimed}.items()}

    def batch(self, batch_id: str) -> Retried:
        """A new batch of the jobs of an ended batch that have no complete answer. Streams: memory stays flat.

        It is the old one's tenant's.

        Jobs whose retry is under way, or has answered, are left out; so it may be called again when a lane was full.
        Raises: NotFoundError, InputError when there is nothing to try again (yet), LaneFullError after a part of them.
        """
        self._jobs.batches.reconcile(batch_id)
        status = self._jobs.batches.status(batch_id)
        if status.open:
            fix = f"{status.open} of its jobs are still open: wait for them, or `ramify cancel {batch_id}` first"
            raise ConflictError("batch id", batch_id, fix)
        limits = Budget(**(status.budget or Budget()).limits())

        def opened(new: str) -> None:
            self._jobs.batches.open(
                new, limits, BatchSource(name=status.source), tenant=status.tenant, retry_of=batch_id,
                webhook=self._jobs.batches.webhook(batch_id),
            )  # fmt: skip

        new = new_id()
        try:
            made = self._filled(new, opened, self._unanswered(batch_id), batch_id)
        except LaneFullError:
            self._jobs.retries.link_batch(new, batch_id, self._again)
            raise
        if made is None:
            raise ConflictError("batch id", batch_id, self._nothing_left(status))
        self._jobs.retries.link_batch(new, batch_id, self._again)
        left = 0 if self._again is not Again.MISSING else self._repairable(status)
        return made.model_copy(update={"degraded": left})

    def _filled(
        self,
        new: str,
        opened: Callable[[str], None],
        wanted: Iterable[tuple[LineRecord, EndedJob, JobRequest]],
        of: str,
    ) -> Retried | None:
        """The new batch of what is wanted, which is opened with its first page; None where there is nothing.

        Raises: LaneFullError after a part of them.
        """
        taken, read, over = 0, 0, TakenOver()
        for page in pages(wanted):
            if not read:
                opened(new)
            more, why = self._add_page(new, read, page)
            taken, read = taken + more, page[-1][0].line
            over += self._taken_over(old.job_id for _, old, _ in page)
            if why:
                held = f"batch {new} has {taken} jobs" if taken else "no job was taken"
                raise LaneFullError(f"{why}; {held}: `ramify {self.command} {of}` again takes the others", [])
        if not taken:
            return None
        self._jobs.batches.close(new)
        return self._made(Retried(batch_id=new, retry_of=of, jobs=taken), over)

    def _repairable(self, status: BatchStatus) -> int:
        """How many of a batch's answers are degraded, and are neither repaired nor tried again yet."""
        if not status.degraded:
            return 0
        repair = Retrying(self._jobs, self._submitter, again=Again.DEGRADED)
        return sum(1 for _ in repair._unanswered(status.batch_id))

    def _nothing_left(self, status: BatchStatus) -> str:
        """Why no job of a batch is tried again."""
        newest = f": `ramify why {status.retried_as}` says how far that is" if status.retried_as else ""
        if self._again is Again.DEGRADED:
            return f"none of its answers is degraded, or all that are were tried again already{newest}"
        fix = "none of its jobs is left to be tried again: all are answered, or tried again already"
        left = self._repairable(status)
        repair = f"; `ramify retry --degraded {status.batch_id}` repairs the {left} that are degraded"
        return f"{fix}{repair if left else newest}"

    def _unanswered(self, batch_id: str) -> Iterator[tuple[LineRecord, EndedJob, JobRequest]]:
        """(line, old job, request) of what is to be tried again, in the order of the lines."""
        for page in self._jobs.batches.lines(batch_id):
            of_line = {line.job_id: line for line in page if line.job_id and line.kind is not LineKind.DUPLICATE}
            olds = {
                old.job_id: old
                for old in self._jobs.retries.read(of_line).values()
                if not old.open and self._wanted(old)
            }
            newer = self._newer(list(olds.values()))
            for job_id, line in of_line.items():
                old, again = olds.get(job_id), newer.get(job_id)
                request = old and self._request(old)
                if old and request and (again is None or not (again.open or again.complete)):
                    yield line, old, request

    def _request(self, old: EndedJob) -> JobRequest | None:
        """The new job's, without the idempotency key: under that the old job would answer. None: it is damaged."""
        changes = {"idempotency_key": None, **self._changes}
        try:
            return JobRequest.of_record(old.request).model_copy(update=changes)
        except ValidationError:
            return None

    def _add_page(
        self, batch_id: str, read: int, page: Sequence[tuple[LineRecord, EndedJob, JobRequest]]
    ) -> tuple[int, str]:
        """Enter a page of lines. How many jobs were taken, and what kept the others out."""
        wanted = {old.job_id: _Claim(new_id(), old.retried_as, request) for _, old, request in page}
        links = {old: (claim.new, claim.before) for old, claim in wanted.items()}
        won = frozenset(self._jobs.retries.claim(links, self._again))
        claimed = {old: claim for old, claim in wanted.items() if old in won}
        lines = list[NewLine]()
        for line, old, request in page:
            if claim := claimed.get(old.job_id):
                job = self._jobs.new_job(claim.new, request, batch_id=batch_id, retry_of=old.job_id)
                lines.append(NewLine(line.line, job, line.id, line.meta, line.key))
        try:
            records = self._submitter.enter(batch_id, Page(read, "", page[-1][0].line, "", lines))
        except BatchCancelledError:
            self._settle(claimed, [])
            raise
        made = frozenset(record.job_id for record in records)
        taken = [old for old, claim in claimed.items() if claim.new in made]
        self._settle(claimed, taken)
        return len(taken), next((record.reason or "" for record in records if record.job_id is None), "")


def _already_retried(job_id: str, newer: str) -> ConflictError:
    return ConflictError("job id", job_id, f"it is tried again already: `ramify why {newer}` says how far that is")


def pages(items: Iterable[T], most: int = _PAGE) -> Iterator[list[T]]:
    """`items` in lists of `most`, read as they are wanted."""
    stream = iter(items)
    while page := list(islice(stream, most)):
        yield page


def job_or_batch(
    id_: str, job: Callable[[str], T], batch: Callable[[str], U], scope: TenantScope | None = None
) -> T | U:
    """What `job` knows of the id, or else `batch`. `scope`: only of these. Raises: NotFoundError when neither does."""
    with suppress(NotFoundError):
        if scope is not None:
            scope.check_job(id_)
        return job(id_)
    with suppress(NotFoundError):
        if scope is not None:
            scope.check_batch(id_)
        return batch(id_)
    fix = "there is no such job or batch, or it has expired; `ramify jobs` lists the newest jobs"
    raise NotFoundError("ID", id_, fix)
