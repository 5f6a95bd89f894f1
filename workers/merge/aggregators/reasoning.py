"""The reasoned answer: steps with their evidence, then the conclusion. Every sentence is cited."""

from __future__ import annotations

from collections.abc import Sequence

from shared.language import said
from shared.models import MergedPool, Summary
from shared.models.reasoning import Step
from shared.settings.aggregators import Reasoning
from workers.merge.aggregators.base import Aggregated, Findings
from workers.merge.aggregators.paths import TITLE, hop_steps
from workers.merge.aggregators.steps import Evidence, aspect_steps, branches, fact_steps, waits
from workers.merge.display import plain_line
from workers.merge.extract import citations, extract, extracted, is_covered, nothing_found, summary_of, written
from workers.merge.passages import Passage
from workers.merge.picking import Picker
from workers.merge.summarise import SummaryRequest, summarise

_CONCLUSION = 3


def reasoning(found: Findings, options: Reasoning) -> Aggregated:
    """Facts in the order in which they needed each other; else one section per facet; else hops between passages."""
    if waits([found.nodes[leaf.node_id] for leaf in found.leaves if leaf.node_id in found.nodes]):
        return _facts(found, options)
    if branches(found):
        return _aspects(found, options)
    return _hops(found, options)


def _facts(found: Findings, options: Reasoning) -> Aggregated:
    steps, evidence = fact_steps(found, options.passages)
    used = [passage for one in evidence for passage in one.passages]
    return _concluded(found, steps, used, _from_last(found, steps, evidence))


def _aspects(found: Findings, options: Reasoning) -> Aggregated:
    picked = extracted(found.question, found.pool, found.nodes, options.sentences)
    steps, evidence = aspect_steps(found, options.passages, picked.groups or {})
    used = [passage for one in evidence for passage in one.passages]
    return _concluded(found, steps, used, summary_of(found.question, picked, found.pool, found.nodes))


def _hops(found: Findings, options: Reasoning) -> Aggregated:
    direct = extract(found.question, found.pool, found.nodes, options.sentences)
    steps, used = hop_steps(found, options.hops) if direct.citations else ([], [])
    searched = any(bridge.how != TITLE for step in steps for bridge in step.bridges)
    return _concluded(found, steps, used, _after_hops(found, used, direct) if searched else direct)


def _concluded(found: Findings, steps: Sequence[Step], used: Sequence[Passage], own: Summary) -> Aggregated:
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


def _from_last(found: Findings, steps: Sequence[Step], evidence: Sequence[Evidence]) -> Summary:
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
    return said("missing", one.query, plain_line(one.query))


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
