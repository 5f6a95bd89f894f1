"""The plain answer: the merged results and their summary."""

from __future__ import annotations

from shared.settings.aggregators import Simple
from workers.merge.aggregators.base import Aggregated, Findings
from workers.merge.extract import extract
from workers.merge.summarise import SummaryRequest, summarise


def simple(found: Findings, options: Simple) -> Aggregated:
    """One text: direct for a question of one leaf, in headed groups for one that branched."""
    summary, cost, warnings = summarise(
        found.question,
        found.pool,
        found.nodes,
        llm=found.llm,
        timeout_s=found.timeout_s,
        ask=SummaryRequest(intent=found.routed.intent),
        fallback=lambda: extract(found.question, found.pool, found.nodes, options.sentences),
    )
    return Aggregated(summary=summary, cost=cost, warnings=warnings)
