"""The plan pool's tasks: a question becomes nodes, nodes become one chord that grows."""

from __future__ import annotations

from functools import cache

from orchestrator.app import app
from orchestrator.enumeration.planner import planned
from orchestrator.planner import Planner
from orchestrator.planning.tree import Grown, as_leaf
from orchestrator.resume import resume
from shared.contract import TaskName
from shared.models import Cost, Node
from shared.models.route import PlannerName, Route
from shared.signatures import add, body, job_chord, member
from shared.steps import Step, Steps, fail_job

steps = Steps(app)


@cache
def planner() -> Planner:
    """One planner a process, made at first use."""
    return Planner(steps.settings)


@steps(TaskName.PLAN_JOB, on_error=fail_job)
def plan_job(step: Step) -> None:
    """Route the question, decompose it, submit the chord; with nothing to search, its body alone.

    A retry takes over what the job that it tries again had, and is planned like any other where that has nothing.
    """
    job = step.job
    if not step.jobs.start_planning(job.id, step.claimant) or resume(step, app):
        return
    route, cost = planner().route(job)
    step.jobs.annotate(job.id, cost, route.warnings)
    step.jobs.route(job.id, route)
    grown, cost = _first(step, route)
    step.jobs.annotate(job.id, cost, grown.warnings)
    if step.jobs.start_searching(job.id, grown.nodes):
        work = job_chord(app, job.id, job.rank, grown.nodes) if grown.nodes else body(app, job.id, job.rank)
        work.apply_async(ignore_result=True)


def _first(step: Step, route: Route) -> tuple[Grown, Cost]:
    """The first nodes. A list that cannot be planned is searched for like any question, and says so."""
    if route.planner is not PlannerName.ENUMERATION:
        return planner().first(step.job, route)
    listed = planned(step, app, steps.settings)
    if listed.nodes:
        return listed, Cost()
    grown, cost = planner().first(step.job, route)
    return grown.model_copy(update={"warnings": (*listed.warnings, *grown.warnings)}), cost


def _keep_as_leaf(step: Step, reason: str) -> None:
    """A branch that cannot be refined is searched itself: nothing of the question is lost."""
    node = step.jobs.node(step.job.id, step.node_id)
    if node is not None:
        step.jobs.annotate(step.job.id, warnings=[f"Subquestion {node.id} could not be refined: {reason}"])
        _grow(step, node, (as_leaf(node),))


@steps(TaskName.PLAN_REFINE, on_error=_keep_as_leaf)
def plan_refine(step: Step) -> None:
    """Refine a branch: its children join the chord that it is a member of."""
    node = step.jobs.node(step.job.id, step.node_id)
    if node is None:
        return
    grown, cost = planner().refine(step.job, node)
    step.jobs.annotate(step.job.id, cost, grown.warnings)
    _grow(step, node, grown.nodes)


def _grow(step: Step, branch: Node, nodes: tuple[Node, ...]) -> None:
    """Claim the children in the store first: the chord would count those of a branch delivered twice twice."""
    if step.jobs.grow(step.job.id, branch.id, nodes):
        for node in nodes:
            if not node.depends_on:
                add(step.task, member(app, step.job.id, step.job.rank, node))
