"""Gets the aggregator of a job its findings, and a reason for each leaf that recorded nothing (A5, E6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.errors import shown
from shared.llm.client import LLM
from shared.models import ROOT_ID, Facet, LeafResult, LeafStatus, MergedPool, Node, NodeKind
from shared.models.enumeration import Table
from shared.models.route import Routed
from shared.routing.rules import route_by_rules
from shared.steps import Step
from workers.merge.aggregators import SIMPLE, Aggregated, Findings, aggregate
from workers.merge.aggregators.plugged import all_known
from workers.merge.extract import nothing_found

#: Kept back from the LLM so that the answer is written before the deadline.
_WRITE_S = 1.0
_UNANSWERED = "had not answered when the job's time was up"
_SETTLED = frozenset({"done", "failed"})


def conclude(
    step: Step,
    pool: MergedPool,
    leaves: Sequence[LeafResult],
    *,
    llm: LLM | None,
    table: Table | None = None,
) -> tuple[str, Aggregated]:
    """What makes the job's answer, by name, and what it made. `leaves` none of which is relevant: that, and no more."""
    job = step.job
    question, name = job.request.question, job.aggregator or SIMPLE
    if verdict(leaves):
        return name, Aggregated(summary=nothing_found(question))
    root = Node(id=ROOT_ID, level=0, facet=Facet.CORE, query=question, kind=NodeKind.BRANCH)
    found = Findings(
        question=question,
        pool=pool,
        nodes={root.id: root, **step.jobs.nodes(job.id)},
        leaves=leaves,
        routed=_routed(step, question),
        table=table,
        llm=llm,
        timeout_s=job.remaining(_WRITE_S),
    )
    given = step.jobs.settings.aggregators.model_dump().get(name, {})
    return aggregate(name, found, given, all_known())


def verdict(leaves: Sequence[LeafResult]) -> str | None:
    """What every leaf that answered said: "nothing relevant", or None (G4)."""
    verdicts = {leaf.verdict for leaf in leaves if leaf.status is LeafStatus.DONE}
    return verdicts.pop() if len(verdicts) == 1 else None


def all_leaves(
    nodes: Mapping[str, Node], states: Mapping[str, str], results: Mapping[str, LeafResult]
) -> list[LeafResult]:
    """Every leaf of the tree in its order; those that recorded nothing (a forced merge) count as failed."""
    return [
        results.get(node.id)
        or LeafResult(node_id=node.id, status=LeafStatus.FAILED, error=_reason(node, nodes, states))
        for node in nodes.values()
        if states.get(node.id) != "grown"
    ]


def _reason(node: Node, nodes: Mapping[str, Node], states: Mapping[str, str]) -> str:
    """Why a leaf recorded nothing: one that waited says for what (G13)."""
    if states.get(node.id) != "waiting":
        return _UNANSWERED
    open_ones = [other for other in node.depends_on if states.get(other) not in _SETTLED]
    if not open_ones:
        return f"waited for {', '.join(node.depends_on)}, whose answers came too late for it to start"
    named = ", ".join(f"{other} ({shown(nodes[other].query)})" if other in nodes else other for other in open_ones)
    return f"was still waiting for {named} when the job's time was up"


def _routed(step: Step, question: str) -> Routed:
    """How the question was read; by rules where the job does not say."""
    return step.jobs.routed(step.job.id) or route_by_rules(question)
