"""`Ramify`, for Python programs: submit questions, follow them, read answers. The CLI is built on it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

from redis import Redis

from orchestrator.batches import BatchIntake
from orchestrator.batching import Batching
from orchestrator.diagnosis.batch import why_batch
from orchestrator.diagnosis.facts import unserved_queues
from orchestrator.diagnosis.job import why_job
from orchestrator.documents.corpus import Corpus, last_ingests
from orchestrator.documents.ingest import Ingesting
from orchestrator.early import early_answer, no_answer, no_list
from orchestrator.growth import Growth, of_answer, replay
from orchestrator.intake import QuestionInput, as_request
from orchestrator.keeping import Keeping
from orchestrator.local.state import connection
from orchestrator.operating import Operator
from orchestrator.outage import Outage
from orchestrator.permits import KeyPermits, Permits
from orchestrator.records.replaying import Replaying, ReplayStarted, manifest_or_error, replay_stage, with_planning
from orchestrator.retries.dead_letters import DeadLetters
from orchestrator.retries.retry import Retrying, job_or_batch
from orchestrator.searching import Searching
from orchestrator.sessions import KeptSession, as_session
from orchestrator.submitting import Submitter
from orchestrator.webhooks.endpoints import Webhooks
from shared.errors import InputError, NotAllowedError, NotRunningError
from shared.jobs import JobReader, JobStore, State, connect, new_id, reachable
from shared.jobs.job_list import STATES, JobFilter, JobList, newest_jobs
from shared.jobs.reader import readable
from shared.jobs.tables import Tables
from shared.jobs.tenant_scope import TenantScope, no_such_batch
from shared.models import Answer, JobEvent, JobRequest, JobStatus
from shared.models.enumeration import ListRow
from shared.models.find import FindResult, SessionResult
from shared.models.manifest import Manifest
from shared.models.replay import ReplayStage
from shared.models.request import Session, SessionIntent
from shared.models.status import BatchWhy, Why
from shared.settings import Settings, load_settings
from shared.tasks.app import make_app
from shared.tenants import bound_tenant, tenant_name

_POLL_S, _PING_S = 0.2, 2.0
#: That a short job has ended is seen soon: the pause before the first look, and the share of the time so far beside it.
_FIRST_POLL_S, _POLL_SHARE = 0.01, 0.04


class Ramify(Batching, Keeping):
    """A client of one Ramify: the running embedded stack, or the Redis that the settings name.

    `tenant` binds it: what it submits is that tenant's, and jobs, batches and dead letters of others are not found.
    None: all tenants', for an operator; what it submits is of the tenant that it names, or of `default`.

    Every method raises NotRunningError when Redis does not answer. Use as a context manager, or call `close`.
    """

    def __init__(self, settings: Settings | None = None, tenant: str | None = None) -> None:
        self.settings = connection(settings or load_settings())
        self._redis = connect(self.settings)
        self._app = make_app(self.settings)
        self._jobs = JobStore(self._redis, self.settings)
        self._reader = JobReader(self._redis)
        self._submitter = Submitter(self._app, self._jobs)
        self._bind(tenant, Permits())

    def _bind(self, tenant: str | None, permits: Permits) -> None:
        self._permits = permits
        self._ingesting = Ingesting(self._app, self._jobs, self._submitter, permits)
        self.tenant = None if tenant is None else tenant_name(tenant)
        self._batches = BatchIntake(self._jobs, self._submitter, self.settings, self.tenant)
        self._searching = Searching(self._app, self.settings, self._run_job, self.tenant)
        self._scope = TenantScope(self._redis, self.tenant)

    def for_tenant(self, tenant: str | None, key_id: str | None = None, open_jobs: int | None = None) -> Self:
        """A client bound to `tenant` (None: to none) on the same connections: do not use it once this one is closed.

        `key_id`: of the API key for which it makes jobs and batches; `open_jobs`: how many of them may be open.
        Takes microseconds, and may be used from several threads. Raises: InputError for what is no name of a tenant.
        """
        bound = copy(self)
        permits = Permits() if key_id is None or open_jobs is None else KeyPermits(self._jobs, key_id, open_jobs)
        bound._bind(tenant, permits)  # noqa: SLF001 - a copy of this
        return bound

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._submitter.close()
        self._app.close()
        self._redis.close()

    @property
    def redis(self) -> Redis:
        """This client's connection, for what belongs to no job: API keys and logins."""
        return self._redis

    def ping(self) -> None:
        """Ask Redis for a sign of life, for two seconds. Raises: NotRunningError."""
        with reachable(self.settings), connect(self.settings, retries=0, timeout_s=_PING_S) as client:
            client.ping()

    def submit(self, question: QuestionInput, **options: Any) -> str:
        """Enqueue one question; returns its job id at once. `options` are fields of JobRequest.

        Raises: InputError when the question or an option cannot be taken, LaneFullError when too many jobs wait.
        """
        request = self._submitter.checked(as_request(question, options, self.tenant))
        with reachable(self.settings), self._permits.take() as permit:
            job_ids, full = self._submitter.submit([(new_id(), request)])
            if full:
                raise full
            permit.job(job_ids[0])
        return job_ids[0]

    def status(self, job_id: str) -> JobStatus:
        """How far a job is. Raises: NotFoundError."""
        with reachable(self.settings):
            return self._reader.status(job_id, self.tenant)

    def statuses(self, job_ids: Sequence[str]) -> list[JobStatus]:
        """How far these jobs are, in one round trip, without those that are gone."""
        with reachable(self.settings):
            return self._reader.statuses(self._scope.own_jobs(job_ids))

    def wait(self, job_id: str, timeout_s: float | None = None, *, outage: Outage | None = None) -> JobStatus:
        """Wait until a job has ended, or `timeout_s` is over (None: all that it may wait and take, and 90 s).

        While Redis is unreachable this retries for up to a minute; `outage` reports that, else the log.
        """
        status, outage = self.status(job_id), outage or Outage()
        begun = time.monotonic()
        end = begun + (self.patience_s(status) if timeout_s is None else timeout_s)
        while not status.terminal and time.monotonic() < end:
            time.sleep(min(_POLL_S, _FIRST_POLL_S + _POLL_SHARE * (time.monotonic() - begun)))
            try:
                status = self.status(job_id)
                if timeout_s is None:  # its turn may have come
                    end = time.monotonic() + self.patience_s(status)
            except NotRunningError as error:
                outage.pause(error)
            else:
                outage.reset()
        return status

    def patience_s(self, status: JobStatus) -> float:
        """Seconds until nobody need wait for its end any more, by Redis' clock: its own time, and 90 s."""
        with reachable(self.settings):
            return self._reader.patience_s(status)

    def stream(
        self, job_id: str, timeout_s: float | None = None, *, outage: Outage | None = None
    ) -> Iterator[JobEvent]:
        """The job's events from its beginning until it ends. Waits and retries as `wait`. Raises: NotFoundError."""
        end = None if timeout_s is None else time.monotonic() + timeout_s

        def events(after: str) -> Iterator[JobEvent]:
            with self._own_job(job_id):
                left = None if end is None else max(0.0, end - time.monotonic())
                yield from self._reader.events(job_id, left, after)

        return (outage or Outage()).stream(events)

    def result(self, job_id: str, *, partial: bool = False) -> Answer:
        """The answer of a job that is done; `partial`: at any state, of the leaves that have answered, without the LLM.

        Raises: NotFoundError; RamifyError while there is no answer or when the job ended without one, with `partial`
        when no leaf has answered; NotRunningError when the merge pool, which makes that, does not answer.
        """
        with self._own_job(job_id):
            answer, known = self._reader.answer(job_id), self._reader.statuses([job_id])
            if answer is not None:
                return answer.model_copy(update={"stale": known[0].stale}) if known else answer
            status = self._reader.status(job_id)
        if partial:
            return early_answer(self._app, self.settings, status)
        raise no_answer(status)

    def tree(self, job_id: str) -> Growth:
        """The tree of a job as far as it has grown, with what its leaves have found. Raises: NotFoundError."""
        with self._own_job(job_id):
            status = self._reader.status(job_id)
            answer = self._reader.answer(job_id) if status.state == State.DONE else None
            grown = replay(status.question, self._reader.past_events(job_id)) if answer is None else of_answer(answer)
            return replace(grown, state=status.state)

    def rows(self, job_id: str) -> Iterator[ListRow]:
        """All rows of a job's list, streamed. Raises: NotFoundError, RamifyError when the job has none (yet)."""
        with self._own_job(job_id), readable(job_id):
            tables = Tables(self._redis, self.settings)
            table = tables.table(job_id)
            if table is None:
                raise no_list(self._reader.status(job_id))
            yield from tables.rows(job_id, table.pages)

    def jobs(
        self,
        limit: int = 20,
        *,
        state: str | Collection[str] | None = None,
        batch: str | None = None,
        degraded: bool | str | None = None,
        tenant: str | None = None,
    ) -> JobList:
        """The newest jobs, newest first.

        `state`: one or several; it may be `open`, `partial` or `degraded` too. `batch`: its jobs and those that its
        lines name; a bound client chooses its own of a batch of several tenants, and does not find one without any.
        `degraded`: for any reason (True), for this one, or for none (False). Looks through the newest 100,000 at most;
        `cut` says that there are more.
        Raises: InputError, NotFoundError.
        """
        states = frozenset([state] if isinstance(state, str) else state or ())
        if unknown := sorted(states.difference(STATES)):
            raise InputError("state", unknown[0], f"choose from {', '.join(STATES)}")
        of_tenant = self.tenant if tenant is None else bound_tenant(self.tenant, tenant)
        with reachable(self.settings):
            wanted = JobFilter(states, batch, of_tenant, degraded)
            if batch is None:
                return newest_jobs(self._redis, limit, wanted)
            self._scope.check_batch(batch, nobodys=True)
            found = newest_jobs(self._redis, limit, wanted)
            if self.tenant not in {None, self._jobs.batches.position(batch).tenant} and not found.looked_at:
                raise no_such_batch(batch)
            return found

    def why(self, id_: str) -> Why | BatchWhy:
        """What a job or a batch waits for, or how it ended; takes milliseconds. Raises: NotFoundError."""
        with reachable(self.settings):
            own = self._app, self._jobs
            found = job_or_batch(id_, partial(why_job, *own), partial(why_batch, *own), self._scope)
            return found.model_copy(update={"settings": self.settings_differ()})

    def settings_differ(self) -> str | None:
        """One sentence where running pools have other settings than this client, with what to do; None where not."""
        return self._submitter.running.difference()

    def unserved_queues(self) -> tuple[str, ...]:
        """The queues that no worker serves now: what is sent there waits."""
        with reachable(self.settings):
            return unserved_queues(self._redis)

    def cancel(self, job_id: str, state: State = State.CANCELLED, reason: str = "cancelled by the caller") -> bool:
        """End a job and keep its leaves from running. False when it had ended before. Raises: NotFoundError."""
        with self._own_job(job_id):
            self._reader.status(job_id)  # says what is wrong
            return bool(self._jobs.endings.stop([job_id], state, reason, unknown=True))

    def manifest(self, job_id: str) -> Manifest:
        """What an answer rests on, by content. Raises: NotFoundError, RamifyError for a job without one."""
        with self._own_job(job_id):
            return with_planning(self._jobs, manifest_or_error(self._reader, job_id))

    def replay(
        self,
        of: str | Manifest,
        start: ReplayStage | str,
        *,
        settings: Mapping[str, Any] | None = None,
        strategy: str | None = None,
    ) -> ReplayStarted:
        """Run an answer again from a stage on, as a job of its own; what stands before it comes from the record.

        `of`: the id of a job that is done, or a manifest, also one of another installation (`plan` and `search` alone).
        `settings` are other than those of the pools, sections nested, as `{"multi_query": {"top_n_per_leaf": 9}}`.
        Raises: NotFoundError, InputError and RamifyError for what is not kept any more, LaneFullError.
        """
        stage, replaying = replay_stage(start), Replaying(self._app, self._jobs, self._submitter)
        if isinstance(of, Manifest):
            with reachable(self.settings), self._permits.take() as permit:
                made = replaying.file(of, stage, settings or {}, strategy, bound_tenant(self.tenant, None))
                permit.job(made.job_id)
                return made
        with self._own_job(of), self._permits.take() as permit:
            made = replaying.job(of, stage, settings or {}, strategy)
            permit.job(made.job_id)
            return made

    @property
    def dead(self) -> DeadLetters:
        """The dead letters: `list`, `count`, `get`, `replay`, `drop`."""
        return DeadLetters(self._jobs, Retrying(self._jobs, self._submitter), self._ingesting, self.tenant)

    @property
    def webhooks(self) -> Webhooks:
        """Who is told of ended jobs and batches: `add`, `endpoints`, `remove`, `enable`, `deliveries` ...."""
        return Webhooks(self._redis, self.settings, self.tenant)

    @property
    def operator(self) -> Operator:
        """What operators look at. Raises: NotAllowedError for a client that is bound to a tenant."""
        if self.tenant is not None:
            raise NotAllowedError(f"lanes and pools are of all tenants: this client is bound to {self.tenant}")
        return Operator(self._app, self._jobs)

    @property
    def corpus(self) -> Corpus:
        """The tenant's documents: `overview`, `documents`, `passage`, `cited`, `text`, `remove`, `export`."""
        tenant = bound_tenant(self.tenant, None)
        ingests = partial(last_ingests, self._redis, self._ingesting, tenant)
        return Corpus(self._app, self.settings, tenant, self.result, ingests)

    def find(self, query: str, **options: Any) -> FindResult:
        """One quick search: no plan, no LLM, no job. `options` are fields of FindRequest.

        Besides: `target_uri` (`ramify://namespace/folder/` or the beginning of a path), `plan=True` for the plan.
        Raises: InputError, NotRunningError when no search worker answers in time.
        """
        self._submitter.running.check_strategy(options.get("strategy"))
        return self._searching.find(query, options)

    def search(
        self, question: str, session: Session | KeptSession | Mapping[str, Any] | None = None, **options: Any
    ) -> SessionResult:
        """A question in a conversation, as typed queries in one job; waits for it.

        `session` is a Session, `{"summary", "messages": [{"role", "content"}]}`, or what `Ramify.session` gives.
        `options` are fields of JobRequest, and `target_uri`, `plan`, `related` as for `find`.
        Raises: InputError, NotRunningError, RamifyError when the job ends without an answer.
        """
        return self._searching.search(question, session, options)

    def read_question(self, question: str, session: Session | Mapping[str, Any]) -> SessionIntent:
        """What a question in a conversation asks, with what it refers to (`standalone`); submits nothing.

        Raises: InputError, NotRunningError when the plan pool does not answer.
        """
        return self._searching.read(question, as_session(session))

    def _run_job(self, request: JobRequest) -> Answer:
        """Submit a job and wait for its answer. Raises: RamifyError when it ends without one."""
        limit_s = request.queue_limit_s or request.deadline_s or self.settings.jobs.deadline_s  # the caller waits, too
        job_id = self.submit(request.model_copy(update={"queue_limit_s": limit_s}))
        for _ in self.stream(job_id):
            pass  # the stream ends with the job
        return self.result(job_id)

    def session(self, session_id: str, tenant: str | None = None) -> KeptSession:
        """A conversation that is kept in Redis: `append`, `summarise`, `load`, `drop`. Raises: InputError."""
        return KeptSession(self._redis, self.settings, session_id, bound_tenant(self.tenant, tenant))
