"""`find` and `search` for programs: one quick query, or a question in a conversation as one job; hits by kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from celery import Celery
from pydantic import ValidationError

from orchestrator.intake import as_request
from orchestrator.planning.intent import AS_ASKED
from orchestrator.remote import call_pool
from orchestrator.sessions import KeptSession, as_session
from shared.contract import TaskName
from shared.errors import InputError, NotRunningError, RamifyError
from shared.jobs.budget import with_default_budget
from shared.models import MAX_QUESTION_CHARS, Answer, Hit, JobRequest, SearchResult
from shared.models.base import Model
from shared.models.find import (
    MAX_ANCHORS,
    MAX_RELATED,
    Anchor,
    Context,
    FindReply,
    FindRequest,
    FindResult,
    IntentReply,
    IntentRequest,
    MatchedContext,
    QueryResult,
    Ranked,
    RelatedReply,
    RelatedRequest,
    SessionResult,
)  # fmt: skip
from shared.models.request import Session, SessionIntent, TypedQuery
from shared.settings import Settings
from shared.settings.faults import request_fault
from shared.tenants import bound_tenant
from shared.uri import is_directory, read_target, uri_of

FIND_TIMEOUT_S = 15.0
#: The plan pool answers by its rules before this.
_INTENT_TIMEOUT_S = 25.0
_TOP = 10
#: Kind of a document -> its group; all other kinds stand under `others`.
_GROUPS = {"memory": "memories", "resource": "resources", "skill": "skills"}
Reply = TypeVar("Reply", bound=Model)


class Searching:
    """Asks the search and plan pools directly; `run_job` submits a job and waits for its answer.

    `tenant`: the only one that may be asked for; None: any.
    """

    def __init__(
        self, app: Celery, settings: Settings, run_job: Callable[[JobRequest], Answer], tenant: str | None = None
    ) -> None:
        self._app, self._settings, self._run_job, self._tenant = app, settings, run_job, tenant

    def find(self, query: str, options: Mapping[str, Any]) -> FindResult:
        """See `Ramify.find`."""
        fields = targeted(options)
        plan = bool(fields.pop("plan", False)) or bool(fields.get("explain"))
        fields["tenant"] = bound_tenant(self._tenant, fields.get("tenant"))
        try:
            request = FindRequest.model_validate({"related": MAX_RELATED, "query": query, **fields})
        except ValidationError as error:
            raise request_fault(error) from None
        reply = self._ask(TaskName.SEARCH_FIND, request, FindReply, FIND_TIMEOUT_S)
        if reply.result is None:
            failure = RamifyError(reply.error or "the search gave no reason")
            failure.exit_code = InputError.exit_code if reply.bad_input else failure.exit_code
            raise failure
        found = reply.result.model_copy(update={"timings_ms": _times(reply.result)})
        if not plan:
            return grouped(found, reply.contexts)
        asked = TypedQuery(query=query, intent=AS_ASKED, priority=1)
        return grouped(found, reply.contexts, [asked], [ranking(asked, found.hits)])

    def search(
        self, question: str, session: Session | KeptSession | Mapping[str, Any] | None, options: Any
    ) -> SessionResult:
        """See `Ramify.search`."""
        fields = targeted(options)
        plan = bool(fields.pop("plan", False)) or bool(fields.get("explain"))
        related = fields.pop("related", MAX_RELATED)
        if not isinstance(related, int) or not 0 <= related <= MAX_RELATED:
            raise InputError("related", related, f"give a number from 0 to {MAX_RELATED}")
        tenant = {"tenant": session.tenant} if isinstance(session, KeptSession) else {}
        request = as_request(question, {"top_n": _TOP, **tenant, **fields}, self._tenant)
        if isinstance(session, KeptSession) and session.tenant != request.tenant:
            raise InputError(
                "session", session.id, f"it is the tenant {session.tenant}'s, the question {request.tenant}'s"
            )
        conversation = session.load() if isinstance(session, KeptSession) else as_session(session or {})
        llm = with_default_budget(request, self._settings).max_calls != 0
        began = time.perf_counter()
        intent = self._intent(IntentRequest(query=request.question, session=conversation, llm=llm))
        intent_ms = round((time.perf_counter() - began) * 1000, 1)
        if isinstance(session, KeptSession) and not conversation:
            warning = f"The session {session.id} holds nothing (yet, or any more): the question was read alone."
            intent = intent.model_copy(update={"warnings": (warning, *intent.warnings)})
        if not intent.retrieval:
            result = no_retrieval_result(request.question, intent)
            return result.model_copy(update={"timings_ms": {"intent": intent_ms, "total": intent_ms}})
        # One job: the queries are its leaves, and what is merged is ranked against the question in its context.
        ranked_by = intent.standalone if len(intent.standalone) <= MAX_QUESTION_CHARS else request.question
        run = {"question": ranked_by, "typed": intent.queries, "summary": False}
        answer = self._run_job(request.model_copy(update=run))
        mode = request.strategy or (request.mode.value if request.mode else self._settings.search.strategy)
        contexts, warnings = self._contexts(request, answer, related)
        found = session_result(intent, answer, mode, contexts, plan=plan)
        timings = {"intent": intent_ms, **found.timings_ms, "total": round((time.perf_counter() - began) * 1000, 1)}
        return found.model_copy(update={"timings_ms": timings, "warnings": (*found.warnings, *warnings)})

    def read(self, question: str, session: Session) -> SessionIntent:
        """What a question in a conversation asks. Raises: NotRunningError, RamifyError."""
        return self._intent(IntentRequest(query=question, session=session, llm=self._settings.has_llm))

    def _intent(self, request: IntentRequest) -> SessionIntent:
        reply = self._ask(TaskName.PLAN_INTENT, request, IntentReply, _INTENT_TIMEOUT_S)
        if reply.intent is None:
            raise RamifyError(reply.error or "the plan pool gave no reason")
        return reply.intent

    def _contexts(
        self, request: JobRequest, answer: Answer, related: int
    ) -> tuple[Mapping[str, Context], tuple[str, ...]]:
        """What stands around the merged hits, and a warning where that could not be found."""
        if not related or not answer.results:
            return {}, ()
        names = set(Anchor.model_fields)
        anchors = tuple(Anchor(**hit.model_dump(include=names)) for hit in answer.results[:MAX_ANCHORS])
        wanted = RelatedRequest(tenant=request.tenant, filters=request.filters, anchors=anchors, related=related)
        try:
            reply = self._ask(TaskName.SEARCH_RELATED, wanted, RelatedReply, FIND_TIMEOUT_S)
        except NotRunningError as error:
            reply = RelatedReply(error=str(error))
        return reply.contexts, (f"The related contexts could not be found: {reply.error}",) if reply.error else ()

    def _ask(self, name: TaskName, request: Model, reply: type[Reply], timeout_s: float) -> Reply:
        return reply.of_record(call_pool(self._app, self._settings, name, request, timeout_s))


def _times(found: SearchResult) -> dict[str, float]:
    """Milliseconds by stage; of one that ran several times, all of them together."""
    times: dict[str, float] = {}
    for trace in found.stages:
        times[trace.stage] = round(times.get(trace.stage, 0.0) + trace.ms, 3)
    return times


def targeted(options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` with `target_uri` as the filter that it stands for.

    Raises: InputError for an address that cannot be read, and for one beside another path or namespace.
    """
    fields = dict(options)
    target = fields.pop("target_uri", None)
    if target is None:
        return fields
    filters = fields.get("filters") or {}
    filters = dict(filters) if isinstance(filters, Mapping) else filters.model_dump(exclude_defaults=True)
    namespace, path = read_target(str(target))
    if filters.get("namespace", namespace) != namespace and namespace is not None:
        raise InputError("target_uri", target, f"the namespace {filters['namespace']!r} is asked for: name one of them")
    if path and filters.get("paths"):
        raise InputError("target_uri", target, "paths are given beside it: give one or the other")
    filters |= {"namespace": namespace} if namespace else {}
    filters |= {"paths": (path,)} if path else {}
    return {**fields, "filters": filters}


def grouped(
    found: SearchResult,
    contexts: Mapping[str, Context],
    plan: Sequence[TypedQuery] | None = None,
    results: Sequence[QueryResult] | None = None,
) -> FindResult:
    """The result with its hits by kind, each group in the order of the hits."""
    groups: dict[str, list[MatchedContext]] = {name: [] for name in (*_GROUPS.values(), "others")}
    for hit in found.hits:
        groups[_GROUPS.get(hit.kind, "others")].append(_matched(hit, contexts.get(hit.chunk_id, Context())))
    return FindResult(
        **{name: getattr(found, name) for name in SearchResult.model_fields},
        **groups,
        total=len(found.hits),
        query_plan=tuple(plan) if plan is not None else None,
        query_results=tuple(results) if results is not None else None,
    )


def ranking(query: TypedQuery, hits: Iterable[Hit], error: str | None = None) -> QueryResult:
    """What one query found by itself."""
    found = tuple(Ranked(uri=uri_of(hit), title=hit.symbol or hit.title, score=hit.score) for hit in hits)
    return QueryResult(query=query.query, context_type=query.context_type, hits=found, error=error)


def session_result(
    intent: SessionIntent, answer: Answer, mode: str, contexts: Mapping[str, Context], *, plan: bool
) -> SessionResult:
    """The result of a search in a conversation, from its job's answer."""
    first = answer.leaves[0] if answer.leaves else None
    found = SearchResult(
        hits=tuple(Hit(**{name: getattr(hit, name) for name in Hit.model_fields}) for hit in answer.results),
        mode=mode,
        candidates=sum(leaf.candidates for leaf in answer.leaves),
        reranked_by=answer.reranked_by,
        verdict=answer.verdict,
        stages=first.stages if first else (),
        timings_ms=answer.timings_ms,
        warnings=tuple(dict.fromkeys((*intent.warnings, *answer.warnings))),
        cost=intent.cost + answer.cost,
    )
    results = _query_results(answer, intent) if plan else None
    whole = grouped(found, contexts, intent.queries if plan else None, results)
    return SessionResult(
        **{name: getattr(whole, name) for name in FindResult.model_fields},
        question=intent.queries[0].query,
        retrieval=True,
        reason=intent.reason,
        standalone=intent.standalone,
        planned_by=intent.by,
        job_id=answer.job_id,
        partial=answer.partial,
        degraded=tuple(sorted({*intent.degraded, *answer.degraded})),
        coverage=answer.coverage,
    )


def no_retrieval_result(question: str, intent: SessionIntent) -> SessionResult:
    """The result where nothing needs to be looked up: no job, no hits, and why."""
    return SessionResult(
        question=question,
        retrieval=False,
        reason=intent.reason,
        standalone=intent.standalone,
        planned_by=intent.by,
        mode="none",
        warnings=intent.warnings,
        degraded=intent.degraded,
        cost=intent.cost,
        query_plan=(),
    )


def _query_results(answer: Answer, intent: SessionIntent) -> list[QueryResult]:
    """In the order of the tree; a leaf's query and kinds name the typed query that it is of."""
    typed = {(query.query, query.kinds): query for query in intent.queries}
    leaves = {leaf.node_id: leaf for leaf in answer.leaves}
    found = ((typed.get((node.query, node.kinds)), leaves.get(node.id)) for node in answer.tree)
    return [ranking(query, leaf.hits, leaf.error) for query, leaf in found if query and leaf]


def _matched(hit: Hit, context: Context) -> MatchedContext:
    leaf = not is_directory(hit)
    return MatchedContext(
        uri=uri_of(hit),
        chunk_id=hit.chunk_id,
        kind=hit.kind,
        leaf=leaf,
        title=hit.symbol or hit.title,
        heading=hit.heading,
        path=hit.path,
        date=hit.date,
        abstract=(context.abstract if leaf else hit.text) or hit.snippet,
        snippet=hit.snippet,
        score=hit.score,
        related=context.related,
        via=hit.via,
    )
