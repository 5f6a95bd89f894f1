"""The plan pool's tasks: a question becomes nodes, nodes become one chord that grows; a conversation, queries."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import ValidationError

from orchestrator.app import app
from orchestrator.documents.ingest import plan_ingest
from orchestrator.planning.intent import session_intent
from orchestrator.planning.lists.planner import defines, plan_list, searched_not_listed
from orchestrator.planning.planner import Planner
from orchestrator.planning.route import callers_route, list_route, possible_callers, possible_list, whole_list
from orchestrator.planning.tree import Grown, as_leaf
from orchestrator.retries.resume import resume
from shared.cache import Cache
from shared.contract import TaskName, read_request
from shared.errors import RamifyError
from shared.language.symbols import asked_callers
from shared.models import Cost, Facet, LeafResult, LeafStatus, Node
from shared.models.degraded import Degradation
from shared.models.find import IntentReply, IntentRequest
from shared.models.route import PlannerName, Route
from shared.providers.fallbacks import Fallbacks, note_reason, noting
from shared.providers.llm.client import ChatClient
from shared.providers.time_shares import seconds_for
from shared.tasks.app import settings_of
from shared.tasks.signatures import add_to_chord, job_chord, merge_signature, node_signature, send_chord
from shared.tasks.task_run import TaskRegistry, TaskRun, fail_job, remote

registry = TaskRegistry(app)
#: Seconds for both asks of the LLM about a conversation; the rules answer after that.
INTENT_S = 20.0
NO_CALLS = "The queries were made by rules, not by the LLM: budget max_calls = 0 allows none."


@cache
def planner() -> Planner:
    """One planner a process, made at first use."""
    return Planner(registry.settings, Cache(registry.jobs.client, registry.settings))


def _planner(run: TaskRun) -> Planner:
    """That of the process, with what a replay changes of the settings."""
    return planner().by(run.settings)


@registry(TaskName.PLAN_JOB, on_error=fail_job)
def plan_job(run: TaskRun) -> None:
    """Route the question, decompose it, submit the chord; with nothing to search, its body alone.

    A retry takes over what the job that it tries again had, and is planned like any other where that has nothing.
    """
    job = run.job
    if not run.jobs.start_planning(job.id, run.claimant):
        return
    if plan_ingest(run, app) or resume(run, app):
        return
    route, cost = _planner(run).route(job)
    run.annotate(cost, route.warnings)
    listed = Grown()
    if possible_callers(route) and _defined(run):
        route = callers_route(route, run.settings)
    if possible_list(route):
        listed = plan_list(run, app, run.settings, possible=True, whole=whole_list(route))
    elif run.settings.routing.adaptive:
        listed = Grown(warnings=searched_not_listed(job.request.question, route))
    route = list_route(route, run.settings) if listed.nodes else route
    run.jobs.route(job.id, route)
    grown, cost = (listed, Cost()) if listed.nodes else _first(run, route)
    run.annotate(cost, grown.warnings if listed.nodes else (*listed.warnings, *grown.warnings))
    if run.jobs.start_searching(job.id, grown.nodes):
        work = job_chord(app, job.id, job.rank, grown.nodes) if grown.nodes else merge_signature(app, job.id, job.rank)
        send_chord(app, work)


def _defined(run: TaskRun) -> bool:
    """Whether the corpus defines the symbol that the question asks the callers of."""
    job = run.job
    symbol, timeout_s = asked_callers(job.request.question), seconds_for("listing", job.remaining(job.leaf_reserve))
    return symbol is not None and defines(job.request, app, registry.settings, symbol, timeout_s)


def _first(run: TaskRun, route: Route) -> tuple[Grown, Cost]:
    """The first nodes. A list that cannot be planned is searched for like any question, and says so."""
    if route.planner is not PlannerName.ENUMERATION:
        return _planner(run).first(run.job, route)
    listed = plan_list(run, app, run.settings)
    if listed.nodes:
        return listed, Cost()
    grown, cost = _planner(run).first(run.job, route)
    return grown.model_copy(update={"warnings": (*listed.warnings, *grown.warnings)}), cost


def _keep_as_leaf(run: TaskRun, reason: str) -> None:
    """A branch that cannot be refined is searched itself: nothing of the question is lost."""
    node = run.jobs.node(run.job.id, run.node_id)
    if node is None:
        _record_lost_branch(run, reason)
        return
    note_reason(Degradation.LLM_UNAVAILABLE)
    run.annotate(warnings=[f"Subquestion {node.id} could not be refined: {reason}"])
    _grow(run, node, (as_leaf(node),))


def _record_lost_branch(run: TaskRun, reason: str) -> None:
    """A branch whose record is lost has nothing to search: it counts as a leaf that failed."""
    place = Node(id=run.node_id, level=run.node_id.count("."), facet=Facet.CORE, query=run.job.request.question)
    if run.jobs.grow(run.job.id, place.id, (place,)):
        run.record_leaf(LeafResult(node_id=place.id, status=LeafStatus.FAILED, error=reason))


@registry(TaskName.PLAN_REFINE, on_error=_keep_as_leaf)
def plan_refine(run: TaskRun) -> None:
    """Refine a branch: its children join the chord that it is a member of."""
    node = run.node()
    grown, cost = _planner(run).refine(run.job, node)
    run.annotate(cost, grown.warnings)
    _grow(run, node, grown.nodes)


def _grow(run: TaskRun, branch: Node, nodes: tuple[Node, ...]) -> None:
    """Claim the children in the store first: the chord would count those of a branch delivered twice twice.

    A branch that became a leaf since something was missing keeps its budget: a repair refines it.
    """
    if run.fallbacks.taken:
        nodes = tuple(
            node.model_copy(update={"budget": branch.budget}) if node.id == branch.id else node for node in nodes
        )
    if run.jobs.grow(run.job.id, branch.id, nodes):
        for node in nodes:
            if not node.depends_on:
                add_to_chord(run.task, node_signature(app, run.job.id, run.job.rank, node))


@cache
def _llm() -> ChatClient | None:
    settings = settings_of(app)
    return ChatClient(settings) if settings.has_llm else None


@remote(app, TaskName.PLAN_INTENT, ignore_result=False)
def intent(raw: dict[str, Any]) -> str:
    """Returns an IntentReply as JSON; faults are reported in it, never raised."""
    try:
        request = read_request(IntentRequest, raw)
        with noting(fallbacks := Fallbacks()):
            room = settings_of(app).llm_prompt_tokens
            found = session_intent(request.query, request.session, _llm() if request.llm else None, INTENT_S, room)
            if not request.llm and settings_of(app).has_llm and found.retrieval:
                note_reason(Degradation.OVER_BUDGET)
                found = found.model_copy(update={"warnings": (*found.warnings, NO_CALLS)})
        found = found.model_copy(update={"degraded": tuple(sorted(fallbacks.take()))})
        return IntentReply(intent=found).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return IntentReply(error=str(error)).model_dump_json()
