"""The leaves of a plan as steps, each with the passages that carry it, or why there are none. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from shared.language import said
from shared.models import Facet, LeafResult, LeafStatus, Node
from shared.models.reasoning import Step
from workers.merge.aggregators.base import Findings
from workers.merge.aggregators.paths import bridges_of
from workers.merge.extract import is_covered, subquestions, written
from workers.merge.passages import Passage
from workers.merge.picking import Picker

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


def fact_steps(found: Findings, most: int) -> tuple[list[Step], list[Evidence]]:
    """The leaves in the order in which they could run, each behind those that it waited for."""
    return _steps(found, "fact", _in_order(found), most)


def aspect_steps(
    found: Findings, most: int, told: Mapping[str, Sequence[Passage]]
) -> tuple[list[Step], list[Evidence]]:
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
    names = [said("step", found.question, places[one]) if one in places else one for one in node_ids]
    return said("comma", found.question).join(names)


def _steps(
    found: Findings, kind: Kind, nodes: Sequence[Node], most: int, told: Mapping[str, Sequence[Passage]] | None = None
) -> tuple[list[Step], list[Evidence]]:
    picker = Picker(found.question, found.pool.hits, joined=False)
    evidence = [_evidence(found, node, nodes, picker, most) for node in nodes]
    evidence = [one._replace(passages=(told or {}).get(one.node.id) or one.passages) for one in evidence]
    return [_step(found, kind, nodes, number, one) for number, one in enumerate(evidence, 1)], evidence


def _step(found: Findings, kind: Kind, nodes: Sequence[Node], number: int, one: Evidence) -> Step:
    places = {node.id: place for place, node in enumerate(nodes, 1)}
    values, by = _handed_on(one.node, nodes)
    numbers = tuple(dict.fromkeys(passage.number for passage in one.passages))
    return Step(
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
    return said(name, found.question, value)


def waits(nodes: Sequence[Node]) -> bool:
    """True for a plan in which some leaf waits for others."""
    return any(node.depends_on for node in nodes)


def branches(found: Findings) -> bool:
    """True when the question was split."""
    return len([node for node in _in_order(found) if node.facet is not Facet.ORIGINAL]) > 1
