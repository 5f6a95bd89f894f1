"""Draws how a question was read. Pure."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.render.tables import columns, pairs
from orchestrator.cli.render.text import plain
from shared.models.route import Hops, PlannerName, QueryType, Route

_MEANING = {
    QueryType.SIMPLE_RULE: "one lookup",
    QueryType.COMPLEX_REASONING: "several searches",
    QueryType.ENUMERATION: "a complete list",
    QueryType.NONE: "no retrieval needed",
}
_HOPS = {Hops.ASPECTS: "several aspects side by side", Hops.MULTI_HOP: "several hops, or one fact of two things"}


_PLANNED = {
    PlannerName.NONE: "nothing is searched",
    PlannerName.ORIGINAL: "the question itself, no subquestions",
    PlannerName.DECOMPOSE: "subquestions by the LLM, else by rules",
    PlannerName.NESTED: "steps that wait for each other, else subquestions",
    PlannerName.ENUMERATION: "everything that fits, in shards",
    PlannerName.REQUEST: "the caller's own plan",
}


def draw_route(routed: Route) -> RenderableType:
    """Type, intent, confidence, what the table gives for that, and one line for each rule that fired."""
    meaning = _HOPS[routed.hops] if routed.hops else _MEANING[routed.type]
    sure = "unsure: answered as if nothing had been read" if routed.unsure else "sure"
    rows: dict[str, RenderableType | str] = {
        "type": plain(f"{routed.type.value} ({meaning})", "bold"),
        "intent": routed.intent.value,
        "confidence": plain(f"{routed.confidence:.2f}, {sure}", "yellow" if routed.unsure else ""),
        "decided by": routed.by,
        "row": f"routing.types.{routed.row}",
        "planner": f"{routed.planner.value} ({_PLANNED[routed.planner]})",
        "strategy": routed.strategy,
        "aggregator": routed.aggregator,
    }
    table = columns("rule", "speaks for", "weight", "because of")
    for reason in routed.reasons:
        table.add_row(plain(reason.rule), reason.says, f"{reason.weight:.2f}", plain(reason.words or "its reply"))
    warnings = (Text("Warning: ", "yellow").append(plain(warning)) for warning in routed.warnings)
    return Group(pairs(rows), table if routed.reasons else plain("No rule fits.", "dim"), *warnings)
