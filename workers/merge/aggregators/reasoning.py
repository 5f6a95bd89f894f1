"""The reasoned answer: steps with their evidence, then the conclusion. Every sentence is cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from shared.language import reader_sentence
from shared.language.text import is_cjk_text, terms
from shared.models import LeafStatus, Node, Summary
from shared.models.answer import ReasoningStep
from shared.models.plan import BOUND_BY_ANSWER
from shared.settings.sections import ReasoningAggregator
from workers.display import plain_line
from workers.merge import extract
from workers.merge.aggregators.paths import TITLE, bridges_of, hop_steps
from workers.merge.callers import of_symbol
from workers.merge.findings import Aggregated, Findings
from workers.merge.identifiers import named_numbers
from workers.merge.picker import Picker
from workers.merge.pieces import QuotableSentence
from workers.merge.summarise import summarise

#: Sentences of a conclusion without an LLM.
_MAX_CONCLUSION = 3
#: Of the names that a step hands on, these many are shown.
_MAX_NAMES = 3
StepKind = Literal["fact", "aspect"]


class Evidence(NamedTuple):
    """A leaf's node with the passages that answer it, or the gap: `query` is its variant that fits them best."""

    node: Node
    query: str
    passages: Sequence[QuotableSentence]
    gap: str | None


def reasoning(found: Findings, options: ReasoningAggregator) -> Aggregated:
    """Facts in the order in which they needed each other; else one section per facet; else hops between passages."""
    nodes = _searched(found)
    if any(node.depends_on for node in nodes):
        return _facts(found, nodes, options)
    if len(nodes) > 1:
        return _aspects(found, nodes, options)
    return _hops(found, options)


def _facts(found: Findings, nodes: Sequence[Node], options: ReasoningAggregator) -> Aggregated:
    """The leaves in the order in which they could run, each behind those that it waited for."""
    steps, evidence = _steps(found, "fact", nodes, options.passages, {})
    used = [passage for one in evidence for passage in one.passages]
    return _concluded(found, steps, used, _last_step_conclusion(found, steps, evidence))


def _aspects(found: Findings, nodes: Sequence[Node], options: ReasoningAggregator) -> Aggregated:
    """The leaves by facet, in the tree's order of facets. What the summary says of a leaf is evidence of its step."""
    picked = extract.extracted(found.question, found.pool, found.nodes, options.sentences)
    facets = list(dict.fromkeys(node.facet for node in nodes))
    by_facet = sorted(nodes, key=lambda node: facets.index(node.facet))
    steps, evidence = _steps(found, "aspect", by_facet, options.passages, picked.groups or {})
    used = [passage for one in evidence for passage in one.passages]
    return _concluded(found, steps, used, extract.summary_of(found.question, picked, found.pool, found.nodes))


def _hops(found: Findings, options: ReasoningAggregator) -> Aggregated:
    direct = extract.extract(found.question, found.pool, found.nodes, options.sentences)
    steps, used = hop_steps(found, options.hops) if direct.citations else ([], [])
    searched = any(bridge.how != TITLE for step in steps for bridge in step.bridges)
    return _concluded(found, steps, used, _hop_conclusion(found, used, direct) if searched else direct)


def _concluded(
    found: Findings, steps: Sequence[ReasoningStep], used: Sequence[QuotableSentence], own: Summary
) -> Aggregated:
    """The conclusion by the LLM where one is there, else of a named symbol its callers, else `own`.

    Its sources are joined by those of the steps.
    """
    made = summarise(found, lambda: of_symbol(found.question, found.pool.hits) or own, steps)
    known = {one.number: one for one in (*extract.citations(used, found.pool.hits), *made.summary.citations)}
    sources = {"citations": tuple(known[number] for number in sorted(known))}
    return made.model_copy(update={"summary": made.summary.model_copy(update=sources)})


def _last_step_conclusion(found: Findings, steps: Sequence[ReasoningStep], evidence: Sequence[Evidence]) -> Summary:
    """Sentences of the steps that no other step needed, behind the steps of which nothing was found."""
    needed = {number for step in steps for number in step.after}
    last = [one for step, one in zip(steps, evidence, strict=True) if step.number not in needed]
    picker = Picker(found.question, found.pool.hits)
    each = max(1, _MAX_CONCLUSION // max(1, len(last)))
    chosen = [passage for one in last if one.passages for passage in picker.pick(one.query, one.node.id, each)]
    if not chosen and extract.is_covered(picker, found.question, found.pool):
        chosen = picker.pick(found.question, None, _MAX_CONCLUSION)
    lines = [reader_sentence("missing", one.query, plain_line(one.query)) for one in evidence if not one.passages]
    lines.append(extract.written(chosen) if chosen else extract.nothing_found(found.question).text)
    return Summary(text="\n".join(lines), kind="extractive", citations=extract.citations(chosen, found.pool.hits))


def _hop_conclusion(found: Findings, used: Sequence[QuotableSentence], direct: Summary) -> Summary:
    """The sentence at the end of the path first, then what answers directly.

    The direct answer alone where the path leaves the pages that an identifier of the question names, or ends in a
    sentence of another language, or without a word of the question.
    """
    if not used or not direct.citations:
        return direct
    end = used[-1]
    foreign = is_cjk_text(end.text) != is_cjk_text(found.question)
    if direct.missing or foreign or end.words.isdisjoint(terms(found.question)):
        return direct
    if (bound := named_numbers(found.question, found.pool.hits)) and end.number not in bound:
        return direct
    if found.pool.hits[end.number - 1].doc_id == found.pool.hits[direct.citations[0].number - 1].doc_id:
        return direct
    line = extract.written([end])
    rest = [one for one in direct.text.split("\n") if end.text not in one]
    text = "\n".join([line, *rest[: _MAX_CONCLUSION - 1]])
    known = {one.number: one for one in (*extract.citations([end], found.pool.hits), *direct.citations)}
    kept = tuple(known[number] for number in sorted(known) if f"[{number}]" in text)
    return direct.model_copy(update={"text": text, "citations": kept})


def _searched(found: Findings) -> list[Node]:
    """The searched subquestions in the tree's order: a leaf waits for earlier ones only."""
    searched = {leaf.node_id for leaf in found.leaves}
    return [node for node in extract.subquestions(found.nodes) if node.id in searched]


def _evidence(found: Findings, node: Node, nodes: Sequence[Node], picker: Picker, limit: int) -> Evidence:
    queries = node.variants or (node.query,)
    query = max(queries, key=lambda one: picker.coverage(one, node.id))
    gap = _gap(found, node, nodes)
    passages: Sequence[QuotableSentence] = ()
    if found.pool.per_leaf.get(node.id):
        if extract.is_covered(picker, query, found.pool, node.id):
            values, by = _bound_values(node, nodes)
            picker.picked = []  # one sentence may carry two steps
            read = values[0] if by == BOUND_BY_ANSWER else ""  # it stands in the passages; names are candidates only
            passages = picker.pick(query, node.id, limit, containing=read)
        gap = gap or (None if passages else reader_sentence("uncovered", found.question))
    return Evidence(node, query, passages, gap)


def _gap(found: Findings, node: Node, nodes: Sequence[Node]) -> str | None:
    """Why a leaf has no evidence, or what it had to do without; None when it has been answered in full."""
    question = found.question
    leaf = next(leaf for leaf in found.leaves if leaf.node_id == node.id)
    if leaf.status is not LeafStatus.DONE:
        return reader_sentence("failed", question, leaf.error or leaf.status.value)
    if not leaf.hits:
        return reader_sentence("nothing", question)
    if leaf.verdict:
        return reader_sentence("unrelated", question)
    if not found.pool.per_leaf.get(node.id):
        return reader_sentence("no_place_in_pool", question)
    if missing := [other for other in node.depends_on if node.bound_by and not node.written.get(other)]:
        places = {other.id: number for number, other in enumerate(nodes, 1)}
        names = [reader_sentence("step", question, places[one]) if one in places else one for one in missing]
        return reader_sentence("dependency_empty", question, reader_sentence("comma", question).join(names))
    return None


def _steps(
    found: Findings,
    kind: StepKind,
    nodes: Sequence[Node],
    limit: int,
    picked: Mapping[str, Sequence[QuotableSentence]],
) -> tuple[list[ReasoningStep], list[Evidence]]:
    """A step for each node with at most `limit` passages; those of `picked` go first."""
    picker = Picker(found.question, found.pool.hits)
    evidence = [_evidence(found, node, nodes, picker, limit) for node in nodes]
    evidence = [one._replace(passages=picked.get(one.node.id) or one.passages) for one in evidence]
    return [_leaf_step(found, kind, nodes, number, one) for number, one in enumerate(evidence, 1)], evidence


def _leaf_step(found: Findings, kind: StepKind, nodes: Sequence[Node], number: int, one: Evidence) -> ReasoningStep:
    places = {node.id: place for place, node in enumerate(nodes, 1)}
    values, by = _bound_values(one.node, nodes)
    numbers = tuple(dict.fromkeys(passage.number for passage in one.passages))
    return ReasoningStep(
        number=number,
        kind=kind,
        node_id=one.node.id,
        facet=one.node.facet.value,
        question=one.query,
        planned=one.node.asked,
        after=tuple(places[other] for other in one.node.depends_on if other in places),
        found=values[:_MAX_NAMES],
        found_by=by,
        text=extract.written(one.passages),
        passages=numbers,
        bridges=bridges_of(found.pool.hits, numbers),
        gap=one.gap,
    )


def _bound_values(node: Node, nodes: Sequence[Node]) -> tuple[tuple[str, ...], str | None]:
    """What was written into those that waited for this node, and how it was found."""
    for other in nodes:
        values = other.written.get(node.id)
        if values:
            return values, other.bound_by
    return (), None
