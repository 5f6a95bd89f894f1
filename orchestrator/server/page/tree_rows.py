"""A job's tree as rows from the top down, each with its place, state, score and time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.growth import Growth, LeafView
from orchestrator.text_lines import one_line
from shared.models import ROOT_ID, Answer, Node, NodeKind
from shared.models.base import Model

#: Deeper rows are indented like this one.
DEEPEST = 6


class TreeRow(Model):
    """One node. `state`: that of a leaf, "branch", or "planned". `ms`: how long it took, None while that is not known.

    `asked`: the query as it was planned, where something was written into it; `why`: the gap that it was added for;
    `note`: its best hit.
    """

    id: str
    depth: int
    facet: str
    query: str
    state: str
    asked: str = ""
    why: str = ""
    waits: tuple[str, ...] = ()
    hits: int | None = None
    score: float | None = None
    ms: int | None = None
    error: str = ""
    note: str = ""


#: What scripts copy and fill.
BLANK_ROW = TreeRow(id="0", depth=1, facet="", query="", state="pending")


def rows_of(growth: Growth, notes: Mapping[str, str] | None = None, *, planned: bool = False) -> list[TreeRow]:
    """All nodes in the tree's order; `notes` by node id, `planned`: none of it has run."""
    return list(_below(growth, ROOT_ID, 1, notes or {}, planned=planned))


def best_hits(answer: Answer) -> dict[str, str]:
    """Node id -> the title of the leaf's best hit."""
    return {leaf.node_id: leaf.hits[0].title for leaf in answer.leaves if leaf.hits}


def planned_rows(question: str, tree: Sequence[Node]) -> list[TreeRow]:
    """The rows of a plan that has not run."""
    return rows_of(Growth(question=question, nodes={node.id: node for node in tree}), planned=True)


def _below(growth: Growth, node_id: str, depth: int, notes: Mapping[str, str], *, planned: bool) -> Iterator[TreeRow]:
    for node in growth.children(node_id):
        yield _row(node, growth.leaves.get(node.id), min(depth, DEEPEST), notes.get(node.id, ""), planned=planned)
        yield from _below(growth, node.id, depth + 1, notes, planned=planned)


def _row(node: Node, leaf: LeafView | None, depth: int, note: str, *, planned: bool) -> TreeRow:
    state = "branch" if node.kind is NodeKind.BRANCH else "planned" if planned else leaf.status if leaf else "pending"
    query = f"{node.query} (+{len(node.variants) - 1})" if len(node.variants) > 1 else node.query
    return TreeRow(
        id=node.id,
        depth=depth,
        facet=node.facet.value,
        query=one_line(query),
        state=state,
        asked=one_line(node.asked) if node.asked and node.asked != node.query else "",
        why=one_line(node.gap.what) if node.gap else "",
        waits=node.depends_on,
        hits=leaf.hits if leaf else None,
        score=leaf.score if leaf else None,
        ms=max(0, leaf.ended_ms - leaf.since_ms) if leaf and leaf.ended_ms else None,
        error=one_line(leaf.error) if leaf else "",
        note=one_line(note),
    )
