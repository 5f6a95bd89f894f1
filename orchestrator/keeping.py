"""The part of the client that tries jobs again and keeps their answers fresh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from orchestrator.intake import QuestionInput, as_request
from orchestrator.permits import Permits
from orchestrator.retries.refresh import Refreshing
from orchestrator.retries.retry import Retried, Retrying, checked_changes, job_or_batch
from orchestrator.standing.questions import StandingQuestions
from orchestrator.submitting import Submitter
from shared.errors import InputError
from shared.jobs import JobReader, JobStore, reachable
from shared.jobs.endings import Again
from shared.jobs.job_list import JobList
from shared.jobs.judgements import Judgements
from shared.jobs.stale import StaleAnswers
from shared.jobs.tenant_scope import TenantScope, no_such_job
from shared.models import Answer, JobStatus
from shared.models.degraded import OnOutage
from shared.models.judgement import Judged, Judgement
from shared.models.standing import Notify, StandingQuestion
from shared.settings import Settings
from shared.tenants import bound_tenant


class Keeping(ABC):
    """Methods of the client."""

    settings: Settings
    tenant: str | None
    _jobs: JobStore
    _reader: JobReader
    _submitter: Submitter
    _scope: TenantScope

    @abstractmethod
    def result(self, job_id: str, *, partial: bool = False) -> Answer:
        """The answer of a job."""

    @abstractmethod
    def status(self, job_id: str) -> JobStatus:
        """How far a job is."""

    _permits: Permits

    def retry(
        self,
        id_: str,
        *,
        degraded: bool = False,
        deadline_s: float | None = None,
        queue_limit_s: float | None = None,
        on_outage: str | None = None,
    ) -> Retried:
        """Try an ended job, or the jobs of an ended batch, again: what is missing runs, under a new id.

        `degraded`: of the answers that were made without something, that part runs again, and nothing else is tried.
        `deadline_s`, `queue_limit_s`, `on_outage`: of each new job; None: as the old one asked for, but a repair
        waits for a server that fails.
        Raises: NotFoundError, InputError for one of these that cannot be and when there is nothing to try again (yet),
        LaneFullError.
        """
        outage = on_outage or (OnOutage.WAIT if degraded else None)
        given = {"deadline_s": deadline_s, "queue_limit_s": queue_limit_s, "on_outage": outage}
        again = Again.DEGRADED if degraded else Again.MISSING
        retrying = Retrying(self._jobs, self._submitter, checked_changes(given), again)
        with reachable(self.settings), self._permits.take() as permit:
            return permit.of(job_or_batch(id_, retrying.job, retrying.batch, self._scope))

    def refresh(self, id_: str) -> Retried:
        """Run again, under a new id, what changed documents have touched of an answer, or of the answers of a batch.

        Raises: NotFoundError, InputError where nothing is stale or all is refreshed already, LaneFullError.
        """
        refreshing = Refreshing(self._jobs, self._submitter)
        with reachable(self.settings), self._permits.take() as permit:
            return permit.of(job_or_batch(id_, refreshing.job, refreshing.batch, self._scope))

    def refresh_stale(self, *, tenant: str | None = None) -> Retried:
        """The same of all stale answers of a tenant, as a new batch. Raises: InputError, LaneFullError."""
        with reachable(self.settings), self._permits.take() as permit:
            return permit.of(Refreshing(self._jobs, self._submitter).of_tenant(bound_tenant(self.tenant, tenant)))

    def refreshes_under_way(self, id_: str | None = None, *, tenant: str | None = None) -> list[Retried]:
        """The refreshes that `refresh` of this id (None: `refresh_stale`) would not begin, since they have not ended.

        Raises: NotFoundError.
        """
        refreshing = Refreshing(self._jobs, self._submitter)
        with reachable(self.settings):
            if id_ is None:
                return refreshing.tenant_under_way(bound_tenant(self.tenant, tenant))
            return job_or_batch(id_, refreshing.job_under_way, refreshing.batch_under_way, self._scope)

    @property
    def standing(self) -> StandingQuestions:
        """Standing questions: `add`, `all`, `get`, `notices`, `remove`."""
        return StandingQuestions(self._jobs.client, self.settings, self.tenant)

    def watch(
        self,
        question: QuestionInput,
        *,
        every_s: float | None = None,
        notify: Notify | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> StandingQuestion:
        """Keep a question that is asked again when the corpus changes what its answer rests on, or every so often.

        `notify`: how it is told when what it cites changes. `options` are fields of JobRequest. Raises: InputError.
        """
        request = self._submitter.checked(as_request(question, options, self.tenant))
        with reachable(self.settings):
            return self.standing.add(request, every_s=every_s, notify=notify)

    def judge(self, job_id: str, verdict: str, *, documents: Iterable[str] = ()) -> Judgement:
        """Note what a person says of an answer, or of documents that it shows: good or bad. The last word counts.

        `documents`: numbers of citations, or ids, paths or titles of results. Raises: NotFoundError, InputError.
        """
        if verdict not in frozenset(Judged):
            raise InputError("verdict", verdict, "write good or bad")
        answer, tenant = self.result(job_id), self.status(job_id).tenant
        chosen = _judged_documents(answer, documents)
        with reachable(self.settings):
            kept = Judgements(self._jobs.client, self.settings, self._jobs.clock)
            if not kept.judge(tenant, job_id, Judged(verdict), chosen):
                raise no_such_job(job_id)
            return kept.read([job_id])[0]

    def judgements(self, limit: int = 1000, *, tenant: str | None = None) -> list[Judgement]:
        """What people have said of a tenant's answers, those that were judged last first."""
        with reachable(self.settings):
            kept = Judgements(self._jobs.client, self.settings, self._jobs.clock)
            return kept.of_tenant(bound_tenant(self.tenant, tenant), limit)

    def stale_jobs(self, limit: int = 20, *, tenant: str | None = None) -> JobList:
        """The stale answers of a tenant, the one that has been stale for longest first."""
        with reachable(self.settings):
            refreshing = Refreshing(self._jobs, self._submitter)
            wanted = list(islice(refreshing.stale(bound_tenant(self.tenant, tenant)), limit))
            return JobList(self._reader.statuses(wanted))

    def unchecked_answers(self, *, tenant: str | None = None) -> int:
        """How many answers of a tenant are still to be looked at since its corpus changed: more may be stale."""
        with reachable(self.settings):
            stale = StaleAnswers(self._jobs.client, self.settings, self._jobs.clock)
            return len(stale.rechecks(bound_tenant(self.tenant, tenant)))


def _judged_documents(answer: Answer, names: Iterable[str]) -> list[str]:
    """The ids of the documents that `names` mean: `2` for the citation [2], else an id, path or title of a result.

    Raises: InputError for what the answer does not show.
    """
    return list(dict.fromkeys(_document(answer, name) for name in names))


def _document(answer: Answer, name: str) -> str:
    cited = {str(one.number): one.doc_id for one in answer.summary.citations if one.doc_id}
    if name in cited:
        return cited[name]
    for hit in answer.results:
        if name in {hit.doc_id, hit.path, hit.title}:
            return hit.doc_id
    shown = ", ".join(dict.fromkeys(hit.path for hit in answer.results[:5])) or "none"
    fix = f"name a citation by its number, or a document that the answer shows by its path ({shown} ...)"
    raise InputError("--doc", name, fix)
