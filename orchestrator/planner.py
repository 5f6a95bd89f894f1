"""Plans one job: route, decompose, grow. Holds the decomposer; keeps no state of jobs."""

from __future__ import annotations

from orchestrator.intent.nodes import typed_leaves
from orchestrator.planning.decompose import Decomposer
from orchestrator.planning.route import route
from orchestrator.planning.tree import Grown, children_of, first_level
from shared.job_store import Job
from shared.llm.client import ChatClient
from shared.models import Cost, Decomposition, Node, Plan, SubQuery
from shared.settings import Settings

#: Planning may take this share of what is left of a job's time; leaves need the rest.
_PLANNING_SHARE = 0.4
NO_LLM = "No LLM is configured (llm_model, llm_base_url): the question was split by rules."


class Planner:
    """Turns a question into nodes, level by level (B1-B4)."""

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.decomposition
        self._settings = settings
        self._own_limits = self._limits.model_copy(update={"max_children": self._limits.max_total_leaves})
        self._decomposer = Decomposer(ChatClient(settings) if settings.has_llm else None)

    def first(self, job: Job) -> tuple[Grown, Cost]:
        """The original question's leaf and the first level."""
        question = job.request.question
        if job.request.typed:
            return typed_leaves(job.request.typed, job.request.filters), Cost()
        if job.request.subqueries:
            return first_level(question, _own_plan(job.request.subqueries), self._own_limits), Cost()
        if not route(job.request, self._settings).decompose:
            return first_level(question, Decomposition(by="request"), self._limits), Cost()
        found, cost = self._decompose(question, job)
        grown = first_level(question, found, self._limits)
        notes = () if self._settings.has_llm else (NO_LLM,)
        return grown.model_copy(update={"warnings": (*notes, *grown.warnings)}), cost

    def refine(self, job: Job, branch: Node) -> tuple[Grown, Cost]:
        """A branch's children; the branch itself as a leaf where it cannot be refined."""
        found, cost = self._decompose(branch.query, job)
        return children_of(branch, found, self._limits, job.request.question), cost

    def _decompose(self, question: str, job: Job) -> tuple[Decomposition, Cost]:
        """Up to max_children subqueries; what exceeds a budget is left out by the tree, by name."""
        timeout = _PLANNING_SHARE * job.remaining(job.leaf_reserve)
        return self._decomposer.decompose(question, self._limits.max_children, timeout)


def _own_plan(plan: Plan) -> Decomposition:
    """The caller's own subqueries as they stand (G7); those beyond the cap on leaves are left out by name."""
    subqueries = (SubQuery(dimension=entry.dimension, query=entry.query, depends_on=entry.depends_on) for entry in plan)
    return Decomposition(subqueries=tuple(subqueries), by="request")
