"""Plans one job: route, decompose, grow. Holds the router and the decomposer; keeps no state of jobs."""

from __future__ import annotations

from orchestrator.planning.decompose import Decomposer
from orchestrator.planning.own import own_tree, typed_leaves
from orchestrator.planning.route import decided, requested_way, routed_way
from orchestrator.planning.router import Router, as_requested
from orchestrator.planning.tree import Grown, children_of, first_level
from shared.job_store import Job
from shared.language.routing import route_by_rules
from shared.llm.client import ChatClient
from shared.models import Cost, Decomposition, Node
from shared.models.route import PlannerName, Route
from shared.settings import Settings
from shared.settings.strategies import asked_strategy

#: Planning may take this share of what is left of a job's time, reading the question this one; leaves need the rest.
_PLANNING_SHARE = 0.4
_ROUTING_SHARE = 0.1
NO_LLM = "No LLM is configured (llm_model, llm_base_url): the question was split by rules."


class Planner:
    """Turns a question into nodes, level by level, by the way that its type asks for."""

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.decomposition
        self._settings = settings
        self._llm = llm = ChatClient(settings) if settings.has_llm else None
        self._decomposer, self._by_rules = Decomposer(llm), Decomposer()
        self._router = Router(llm if settings.routing.llm else None, settings.routing.unsure_below)

    def close(self) -> None:
        """Let go of the connections to the LLM."""
        if self._llm is not None:
            self._llm.close()

    def route(self, job: Job) -> tuple[Route, Cost]:
        """How the job is answered: as its request says, else as its question reads. The LLM is asked when unsure."""
        request, settings = job.request, self._settings
        if what := decided(request):
            ruled = route_by_rules(request.question, settings.routing.unsure_below)
            return requested_way(request, as_requested(ruled, what), settings), Cost()
        routed, cost = self._router.route(request.question, _ROUTING_SHARE * job.remaining(job.leaf_reserve))
        return routed_way(routed, settings), cost

    def first(self, job: Job, route: Route) -> tuple[Grown, Cost]:
        """The original question's leaf and the first level; nothing for a question that needs no retrieval."""
        request, question = job.request, job.request.question
        match route.planner:
            case PlannerName.NONE:
                return Grown(), Cost()
            case PlannerName.REQUEST if request.typed:
                return typed_leaves(request.typed, request.filters), Cost()
            case PlannerName.REQUEST:
                return own_tree(question, request.subqueries, self._limits), Cost()
            case PlannerName.ORIGINAL:
                found, cost = Decomposition(by="rules"), Cost()
            case PlannerName.NESTED:
                found, cost = self._nested(question, job)
            case _:
                found, cost = self._decompose(question, job)
        grown = _searched_by(self._leaf_strategy(job, route), first_level(question, found, self._limits))
        notes = () if self._settings.has_llm or route.planner is PlannerName.ORIGINAL else (NO_LLM,)
        return grown.model_copy(update={"warnings": (*notes, *grown.warnings)}), cost

    def refine(self, job: Job, branch: Node) -> tuple[Grown, Cost]:
        """A branch's children; the branch itself as a leaf where it cannot be refined."""
        found, cost = self._decompose(branch.query, job)
        return _searched_by(branch.strategy, children_of(branch, found, self._limits, job.request.question)), cost

    def _nested(self, question: str, job: Job) -> tuple[Decomposition, Cost]:
        """The steps that the rules see, which are right where they see any; else a decomposition like any other."""
        steps, _ = self._by_rules.decompose(question, self._limits.max_children, 0)
        if any(step.depends_on for step in steps.subqueries):
            return steps, Cost()
        return self._decompose(question, job)

    def _decompose(self, question: str, job: Job) -> tuple[Decomposition, Cost]:
        """Up to max_children subqueries; what exceeds a budget is left out by the tree, by name."""
        timeout = _PLANNING_SHARE * job.remaining(job.leaf_reserve)
        return self._decomposer.decompose(question, self._limits.max_children, timeout)

    def _leaf_strategy(self, job: Job, route: Route) -> str | None:
        """What the nodes carry: nothing where the request names a strategy, or the default is meant."""
        if asked_strategy(job.request) or route.strategy == self._settings.search.strategy:
            return None
        return route.strategy


def _searched_by(strategy: str | None, grown: Grown) -> Grown:
    if strategy is None:
        return grown
    nodes = tuple(node.model_copy(update={"strategy": strategy}) for node in grown.nodes)
    return grown.model_copy(update={"nodes": nodes})
