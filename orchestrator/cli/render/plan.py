"""Draws a plan before it is run, its estimate, and how a question was read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType, group
from rich.text import Text

from orchestrator.cli.render.tree import draw
from orchestrator.cli.text import columns, counted, pair, pairs, plain, read_as, warnings
from orchestrator.growth import Growth, LeafView
from orchestrator.planning.estimate import Estimate, by_stage
from shared.models import Filters, NodeKind
from shared.models.route import Hops, PlannerName, QueryType, Route

if TYPE_CHECKING:  # it brings Redis with it, which `ramify route` does without
    from orchestrator.planning.preview import Preview

_TYPES = {
    QueryType.SIMPLE_RULE: "one lookup",
    QueryType.COMPLEX_REASONING: "several searches",
    QueryType.ENUMERATION: "a complete list",
    QueryType.NONE: "no retrieval needed",
}
_HOPS = {Hops.ASPECTS: "several aspects side by side", Hops.MULTI_HOP: "several hops, or one fact of two things"}
_PLANNERS = {
    PlannerName.NONE: "nothing is searched",
    PlannerName.ORIGINAL: "the question itself, no subquestions",
    PlannerName.DECOMPOSE: "subquestions by the LLM, else by rules",
    PlannerName.NESTED: "steps that wait for each other, else subquestions",
    PlannerName.ENUMERATION: "everything that fits, in shards",
    PlannerName.REQUEST: "the caller's own plan",
}


@group()
def draw_preview(found: Preview) -> Iterator[RenderableType]:
    """How the question was read, the tree, and the estimate as a table."""
    nodes = {node.id: node for node in found.tree}
    leaves = {
        node.id: LeafView(status="waiting" if node.depends_on else "pending")
        for node in found.tree
        if node.kind is NodeKind.LEAF
    }
    yield pair("Read as", read_as(found.route))
    yield pair("Strategy", found.strategy)
    if found.filters != Filters():
        given = found.filters.model_dump(mode="json", exclude_defaults=True)
        named = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
        yield pair("Filters", "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in named.items()))
    yield Text()
    yield draw(Growth(question=found.question, state="planned", nodes=nodes, leaves=leaves))
    yield Text()
    yield from _estimate(found.estimate)
    if cost := found.cost:
        calls = counted(cost.llm_calls, "LLM call")
        yield pair("Planning just now cost", f"{calls} ({cost.llm_tokens_in} tokens in, {cost.llm_tokens_out} out)")
    yield from warnings(found.warnings)


def _estimate(found: Estimate) -> Iterator[RenderableType]:
    numbers = ("calls", "tokens in", "tokens out", found.currency or "cost")
    table = columns("stage", "of", *numbers, right=numbers, whole=numbers)
    for row in by_stage(found.rows):
        cost = "?" if row.cost is None else _range(row.cost, ".4g")
        paid = cost if row.what != "store" else ""
        table.add_row(
            row.stage, plain(row.what), _range(row.calls), _range(row.tokens_in), _range(row.tokens_out), paid
        )
    if found.rows:
        yield table
    total = f"LLM {_range(found.llm_calls) or '0'} calls, {_range(found.tokens) or '0'} tokens"
    if found.cost is not None:
        total += f", {_range(found.cost, '.4g') or '0'} {found.currency}"
    yield pair("In all", f"{total}; run from a file, the planning falls away")
    if found.no_price:
        yield pair("No price", f"{', '.join(found.no_price)}: set prices.llm_input and so on to see money")


def _range(given: tuple[float, float], form: str = ",") -> str:
    """`low..high`, one number where they are the same, nothing for 0."""
    low, high = given
    return "" if not high else format(low, form) if low == high else f"{low:{form}}..{high:{form}}"


def draw_route(routed: Route) -> RenderableType:
    """Type, intent, confidence, what the table gives for that, and one line for each rule that fired."""
    meaning = _HOPS[routed.hops] if routed.hops else _TYPES.get(routed.type, routed.type.value.replace("_", " "))
    sure = "unsure: answered as if nothing had been read" if routed.unsure else "sure"
    rows: dict[str, RenderableType | str] = {
        "type": plain(f"{routed.type.value} ({meaning})", "bold"),
        "intent": f"{routed.intent.value} (detail: {routed.intent.detail})",
        "confidence": plain(f"{routed.confidence:.2f}, {sure}", "yellow" if routed.unsure else ""),
        "decided by": routed.by,
        "row": f"routing.types.{routed.row}",
        "planner": f"{routed.planner.value} ({_PLANNERS[routed.planner]})",
        "strategy": routed.strategy,
        "aggregator": routed.aggregator,
    }
    table = columns("rule", "speaks for", "weight", "because of")
    for reason in routed.reasons:
        table.add_row(plain(reason.rule), reason.says, f"{reason.weight:.2f}", plain(reason.words or "its reply"))
    return Group(pairs(rows), table if routed.reasons else plain("No rule fits.", "dim"), *warnings(routed.warnings))
