"""A plan before it is run: routes and decomposes like a job, searches nothing. Needs no stack."""

from __future__ import annotations

import time
from contextlib import closing

from orchestrator.planning.estimate import Estimate, estimate
from orchestrator.planning.plan_file import FileEntry, PlanFile
from orchestrator.planning.planner import Planner
from shared.jobs import Job, State
from shared.models import Cost, Filters, JobRequest, Node, NodeKind
from shared.models.base import Model
from shared.models.plan import node_order, renumbered
from shared.models.route import PlannerName, Route
from shared.models.told import Sentence
from shared.settings import Settings
from shared.settings.strategies import asked_strategy

_FROM_THE_CORPUS = (
    "A complete list is read in slices of the corpus, which only a running stack knows: the tree shows what is "
    "searched without them, and the estimate leaves their calls out."
)
_NOTHING = "Nothing has to be looked up; with --plan the question would be searched all the same."


class Preview(Model):
    """The tree that a job would grow and what it would call. `cost` is what planning it has cost just now."""

    question: str
    route: Route
    strategy: str
    filters: Filters = Filters()
    tree: tuple[Node, ...] = ()
    plan: PlanFile
    estimate: Estimate
    cost: Cost = Cost()
    warnings: tuple[Sentence, ...] = ()


def preview(request: JobRequest, settings: Settings, *, llm: bool = True) -> Preview:
    """Plan `request`, every level of it. With `llm` and an LLM configured this makes the planning calls of a job."""
    ask = llm and settings.has_llm and settings.budget.max_calls != 0
    job = _as_job(request, settings)
    with closing(Planner(settings if ask else settings.model_copy(update={"llm_model": ""}))) as planner:
        route, cost = planner.route(job)
        is_list = route.planner is PlannerName.ENUMERATION
        original = route.model_copy(update={"planner": PlannerName.ORIGINAL})
        grown, spent = planner.first(job, original if is_list else route)
        nodes, cost, warnings = list(grown.nodes), cost + spent, [*route.warnings, *grown.warnings]
        children = {node.parent_id for node in nodes}
        waiting = [node for node in nodes if node.kind is NodeKind.BRANCH and node.id not in children]
        for branch in waiting:  # grows while it is walked
            more, spent = planner.refine(job, branch)
            cost, warnings = cost + spent, [*warnings, *more.warnings]
            known = {node.id: node for node in nodes} | {node.id: node for node in more.nodes}
            nodes = list(known.values())
            waiting += [node for node in more.nodes if node.kind is NodeKind.BRANCH]
    nodes.sort(key=lambda node: node_order(node.id))
    if is_list:
        warnings.append(_FROM_THE_CORPUS)
    if route.planner is PlannerName.NONE:
        warnings.append(_NOTHING)
    return Preview(
        question=request.question,
        route=route,
        strategy=route.strategy,
        filters=request.filters,
        tree=tuple(nodes),
        plan=as_file(request, route, nodes, settings),
        estimate=estimate(request, route, nodes, settings),
        cost=cost,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def as_file(request: JobRequest, route: Route, nodes: list[Node], settings: Settings) -> PlanFile:
    """The tree as a plan that gives the same tree again; the question's own leaf needs no entry."""
    given = [node for node in nodes if node.facet.value != "original" and not node.kinds]
    ids = {node.id: number for number, node in enumerate(given, 1)}
    strategy = asked_strategy(request) or route.strategy.partition("/")[0]
    return PlanFile(
        question=request.question,
        strategy=None if strategy == settings.search.strategy else strategy,
        filters=None if request.filters == Filters() else request.filters,
        subqueries=tuple(_entry(node, ids) for node in given),
    )


def _entry(node: Node, ids: dict[str, int]) -> FileEntry:
    numbers = {int(other.rpartition(".")[2]): ids[other] for other in node.depends_on}
    return FileEntry(
        id=ids[node.id],
        query=renumbered(node.query, numbers.get),
        dimension=node.facet,
        depends_on=tuple(ids[other] for other in node.depends_on),
        under=ids.get(node.parent_id or ""),
    )


def _as_job(request: JobRequest, settings: Settings) -> Job:
    """A job that is never enqueued, with a job's time to plan."""
    now = time.time()
    seconds = min(request.deadline_s or settings.jobs.deadline_s, request.max_seconds or settings.jobs.deadline_s)
    return Job(
        id="preview", state=State.PLANNING, request=request, created_at=now, updated_at=now, deadline_s=seconds,
        left_s=seconds,
    )  # fmt: skip
