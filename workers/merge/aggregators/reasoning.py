"""The reasoned answer: steps with their evidence, then the conclusion. Every sentence is cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from shared.language import reader_sentence
from shared.models import Facet, LeafResult, LeafStatus, MergedPool, Node, Summary
from shared.models.answer import ReasoningStep
from shared.settings.sections import ReasoningAggregator
from workers.display import plain_line
from workers.merge.aggregators.base import Aggregated, Findings
from workers.merge.aggregators.paths import TITLE, bridges_of, hop_steps
from workers.merge.extract import (
    Passage,
    Picker,
    citations,
    extract,
    extracted,
    is_covered,
    nothing_found,
    subquestions,
    summary_of,
    written,
)
from workers.merge.summarise import SummaryRequest, summarise

# --- The leaves of a plan as steps, each with the passages that carry it, or why there are none. Pure.

#: Of the names that a step hands on, these many are shown.
_NAMES = 3
#: `Node.bound_by` of a value that the LLM read off the passages.
ANSWER = "answer"
Kind = Literal["fact", "aspect"]


class Evidence(NamedTuple):
    """A leaf's node as its passages answer it, and these: `query` is the one of its variants that fits them best."""

    node: Node
    query: str
    passages: Sequence[Passage]
    gap: str | None


def fact_steps(found: Findings, most: int) -> tuple[list[ReasoningStep], list[Evidence]]:
    """The leaves in the order in which they could run, each behind those that it waited for."""
    return _steps(found, "fact", _in_order(found), most)


def aspect_steps(
    found: Findings, most: int, told: Mapping[str, Sequence[Passage]]
) -> tuple[list[ReasoningStep], list[Evidence]]:
    """The leaves by facet, in the order in which the tree has the facets.

    What is `told` of a leaf in the summary carries its step too.
    """
    nodes = _in_order(found)
    facets = list(dict.fromkeys(node.facet for node in nodes))
    return _steps(found, "aspect", sorted(nodes, key=lambda node: facets.index(node.facet)), most, told)


def _in_order(found: Findings) -> list[Node]:
    """Those that were searched; a leaf waits for earlier ones only, so the tree's order is that of the dependencies."""
    searched = {leaf.node_id for leaf in found.leaves}
    return [node for node in subquestions(found.nodes) if node.id in searched]


def _evidence(found: Findings, node: Node, nodes: Sequence[Node], picker: Picker, most: int) -> Evidence:
    queries = node.variants or (node.query,)
    query = max(queries, key=lambda one: picker.coverage(one, node.id))
    gap = _gap(found, node, nodes)
    passages: Sequence[Passage] = ()
    if found.pool.per_leaf.get(node.id):
        if is_covered(picker, query, found.pool, node.id):
            values, by = _handed_on(node, nodes)
            picker.forget()  # one sentence may carry two steps
            read = values[0] if by == ANSWER else ""  # it stands in the passages; names are candidates only
            passages = picker.pick(query, node.id, most, holding=read)
        gap = gap or (None if passages else _say(found, "uncovered"))
    return Evidence(node, query, passages, gap)


def _gap(found: Findings, node: Node, nodes: Sequence[Node]) -> str | None:
    """Why a leaf has no evidence, or what it had to do without; None when it has been answered in full."""
    leaf = _leaf(found, node)
    if leaf.status is not LeafStatus.DONE:
        return _say(found, "failed", leaf.error or leaf.status.value)
    if not leaf.hits:
        return _say(found, "nothing")
    if leaf.verdict:
        return _say(found, "unrelated")
    if not found.pool.per_leaf.get(node.id):
        return _say(found, "crowded")
    if missing := [other for other in node.depends_on if node.bound_by and not node.written.get(other)]:
        return _say(found, "in_vain", _named(found, missing, nodes))
    return None


def _named(found: Findings, node_ids: Sequence[str], nodes: Sequence[Node]) -> str:
    places = {node.id: number for number, node in enumerate(nodes, 1)}
    names = [reader_sentence("step", found.question, places[one]) if one in places else one for one in node_ids]
    return reader_sentence("comma", found.question).join(names)


def _steps(
    found: Findings, kind: Kind, nodes: Sequence[Node], most: int, told: Mapping[str, Sequence[Passage]] | None = None
) -> tuple[list[ReasoningStep], list[Evidence]]:
    picker = Picker(found.question, found.pool.hits, joined=False)
    evidence = [_evidence(found, node, nodes, picker, most) for node in nodes]
    evidence = [one._replace(passages=(told or {}).get(one.node.id) or one.passages) for one in evidence]
    return [_leaf_step(found, kind, nodes, number, one) for number, one in enumerate(evidence, 1)], evidence


def _leaf_step(found: Findings, kind: Kind, nodes: Sequence[Node], number: int, one: Evidence) -> ReasoningStep:
    places = {node.id: place for place, node in enumerate(nodes, 1)}
    values, by = _handed_on(one.node, nodes)
    numbers = tuple(dict.fromkeys(passage.number for passage in one.passages))
    return ReasoningStep(
        number=number,
        kind=kind,
        node_id=one.node.id,
        facet=one.node.facet.value,
        question=one.query,
        planned=one.node.asked,
        after=tuple(places[other] for other in one.node.depends_on if other in places),
        found=values[:_NAMES],
        found_by=by,
        text=written(one.passages),
        passages=numbers,
        bridges=bridges_of(found.pool.hits, numbers),
        gap=one.gap,
    )


def _handed_on(node: Node, nodes: Sequence[Node]) -> tuple[tuple[str, ...], str | None]:
    """What was written into those that waited for this node, and how it was found."""
    for other in nodes:
        values = other.written.get(node.id)
        if values:
            return values, other.bound_by
    return (), None


def _leaf(found: Findings, node: Node) -> LeafResult:
    return next(leaf for leaf in found.leaves if leaf.node_id == node.id)


def _say(found: Findings, name: str, value: str = "") -> str:
    return reader_sentence(name, found.question, value)


def waits(nodes: Sequence[Node]) -> bool:
    """True for a plan in which some leaf waits for others."""
    return any(node.depends_on for node in nodes)


def branches(found: Findings) -> bool:
    """True when the question was split."""
    return len([node for node in _in_order(found) if node.facet is not Facet.ORIGINAL]) > 1


_CONCLUSION = 3


def reasoning(found: Findings, options: ReasoningAggregator) -> Aggregated:
    """Facts in the order in which they needed each other; else one section per facet; else hops between passages."""
    if waits([found.nodes[leaf.node_id] for leaf in found.leaves if leaf.node_id in found.nodes]):
        return _facts(found, options)
    if branches(found):
        return _aspects(found, options)
    return _hops(found, options)


def _facts(found: Findings, options: ReasoningAggregator) -> Aggregated:
    steps, evidence = fact_steps(found, options.passages)
    used = [passage for one in evidence for passage in one.passages]
    return _concluded(found, steps, used, _from_last(found, steps, evidence))


def _aspects(found: Findings, options: ReasoningAggregator) -> Aggregated:
    picked = extracted(found.question, found.pool, found.nodes, options.sentences)
    steps, evidence = aspect_steps(found, options.passages, picked.groups or {})
    used = [passage for one in evidence for passage in one.passages]
    return _concluded(found, steps, used, summary_of(found.question, picked, found.pool, found.nodes))


def _hops(found: Findings, options: ReasoningAggregator) -> Aggregated:
    direct = extract(found.question, found.pool, found.nodes, options.sentences)
    steps, used = hop_steps(found, options.hops) if direct.citations else ([], [])
    searched = any(bridge.how != TITLE for step in steps for bridge in step.bridges)
    return _concluded(found, steps, used, _after_hops(found, used, direct) if searched else direct)


def _concluded(found: Findings, steps: Sequence[ReasoningStep], used: Sequence[Passage], own: Summary) -> Aggregated:
    """The conclusion by the LLM where one is there, else `own`; its sources are joined by those of the steps."""
    summary, cost, warnings = summarise(
        found.question,
        found.pool,
        found.nodes,
        llm=found.llm,
        timeout_s=found.timeout_s,
        ask=SummaryRequest(intent=found.routed.intent, steps=tuple(steps)),
        fallback=lambda: own,
    )
    known = {one.number: one for one in (*citations(used, found.pool.hits), *summary.citations)}
    summary = summary.model_copy(update={"citations": tuple(known[number] for number in sorted(known))})
    return Aggregated(summary=summary, steps=tuple(steps), cost=cost, warnings=warnings)


def _from_last(found: Findings, steps: Sequence[ReasoningStep], evidence: Sequence[Evidence]) -> Summary:
    """Sentences of the steps that no other step needed, behind the steps of which nothing was found."""
    needed = {number for step in steps for number in step.after}
    last = [one for step, one in zip(steps, evidence, strict=True) if step.number not in needed]
    picker = Picker(found.question, found.pool.hits, joined=True)
    each = max(1, _CONCLUSION // max(1, len(last)))
    chosen = [passage for one in last if one.passages for passage in picker.pick(one.query, one.node.id, each)]
    chosen = chosen or _direct(found, picker)
    lines = [_missing(one) for one in evidence if not one.passages]
    lines.append(written(chosen) if chosen else nothing_found(found.question).text)
    return _summary("\n".join(lines), chosen, found.pool)


def _direct(found: Findings, picker: Picker) -> list[Passage]:
    """What the question itself found."""
    return picker.pick(found.question, None, _CONCLUSION) if is_covered(picker, found.question, found.pool) else []


def _missing(one: Evidence) -> str:
    return reader_sentence("missing", one.query, plain_line(one.query))


def _after_hops(found: Findings, used: Sequence[Passage], direct: Summary) -> Summary:
    """The sentence at the end of the way first, then what answers directly."""
    if not used or not direct.citations:
        return direct
    end = used[-1]
    line = written([end])
    rest = [one for one in direct.text.split("\n") if end.text not in one]
    text = "\n".join([line, *rest[: _CONCLUSION - 1]])
    known = {one.number: one for one in (*citations([end], found.pool.hits), *direct.citations)}
    kept = tuple(known[number] for number in sorted(known) if f"[{number}]" in text)
    return direct.model_copy(update={"text": text, "citations": kept})


def _summary(text: str, chosen: Sequence[Passage], pool: MergedPool) -> Summary:
    return Summary(text=text, kind="extractive", citations=citations(chosen, pool.hits))
