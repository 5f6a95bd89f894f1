"""Grows the tree of subquestions, one decomposition at a time. Pure: the decompositions are handed in."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import shown
from shared.language.text import question_key
from shared.models import ROOT_ID, Decomposition, Facet, Node, NodeKind, PlanEntry, SubQuery
from shared.models.base import Model
from shared.models.plan import references, renumbered, with_answers
from shared.settings.sections import DecompositionSettings as Limits

ORIGINAL_ID = f"{ROOT_ID}.0"
_LIMITS = "decomposition.max_children, decomposition.max_total_leaves"
#: A branch with fewer children than this is better searched itself.
MIN_CHILDREN = 2


class Grown(Model):
    """New nodes of the tree, in order, and what was left out of it on the way (plain sentences)."""

    nodes: tuple[Node, ...] = ()
    warnings: tuple[str, ...] = ()


def as_leaf(node: Node) -> Node:
    """The same node, searched itself instead of refined; its spare budget is given up. Replaces the node of its id."""
    return node.model_copy(update={"kind": NodeKind.LEAF, "budget": 1})


def original_leaf(question: str) -> Node:
    """The leaf that searches the question as it was asked; every tree has it."""
    return Node(id=ORIGINAL_ID, parent_id=ROOT_ID, level=1, facet=Facet.ORIGINAL, query=question)


def first_level(question: str, decomposition: Decomposition, limits: Limits) -> Grown:
    """The root's children: "0.0" (the original question), then "0.1", "0.2" ... The root "0" itself is no work.

    With max_total_leaves = 1 there is only "0.0". The decomposition's own warnings come first.
    """
    root = Node(
        id=ROOT_ID, level=0, facet=Facet.ORIGINAL, query=question, kind=NodeKind.BRANCH, budget=limits.max_total_leaves
    )
    grown = _grow(root, decomposition, limits, question, limits.max_total_leaves - 1)
    return Grown(nodes=(original_leaf(question), *grown.nodes), warnings=grown.warnings)


def children_of(parent: Node, decomposition: Decomposition, limits: Limits, question: str) -> Grown:
    """The children of a branch, ids "<parent>.1", "<parent>.2" ...; `question` is the job's original question.

    A child that searches what the original or an earlier sibling searches is left out silently. Children beyond
    max_children or the parent's budget are left out with a warning that names them. With fewer than two children left
    (none for an empty `decomposition`, that is a refinement that failed) the result is the parent itself as a leaf,
    under its own id, with a warning.

    `depends_on` of a node names earlier siblings; such a node, and one that others wait for, is not refined:
    what is written into a query is found by one leaf.
    """
    grown = _grow(parent, decomposition, limits, question, parent.budget)
    if len(grown.nodes) >= MIN_CHILDREN:
        return grown
    sentence = (
        f"Subquestion {parent.id} ({shown(parent.query)}) did not split into different subquestions: "
        "it is searched as it stands."
    )
    return Grown(nodes=(as_leaf(parent),), warnings=(*decomposition.warnings, sentence))


def _grow(parent: Node, decomposition: Decomposition, limits: Limits, question: str, budget: int) -> Grown:
    useful, ordinals = _different(_with_implied(decomposition.subqueries, question), question)
    room = min(limits.max_children, budget)
    placed = {position: ordinal for position, ordinal in ordinals.items() if ordinal <= room}
    kept, beyond = useful[:room], useful[room:]
    chained = {other for _, sub in kept for other in sub.depends_on if other in placed}
    wants = [
        sub.needs_refinement and parent.level + 1 < limits.max_level and not sub.depends_on and position not in chained
        for position, sub in kept
    ]
    warnings = [
        *decomposition.warnings,
        *([left_out(parent.id, [sub for _, sub in beyond], room, _LIMITS)] if beyond else []),
    ]
    nodes = []
    for (position, sub), share in zip(kept, split(budget, wants), strict=True):
        depends_on, lost = _dependencies(parent.id, position, sub, placed)
        warnings += lost
        nodes.append(
            Node(
                id=f"{parent.id}.{placed[position]}",
                parent_id=parent.id,
                level=parent.level + 1,
                facet=sub.dimension,
                query=_renumbered(position, sub, placed) or sub.query,
                kind=NodeKind.BRANCH if share >= MIN_CHILDREN else NodeKind.LEAF,
                budget=share,
                depends_on=depends_on,
                by=decomposition.by,
            )
        )
    return Grown(nodes=needed(nodes), warnings=tuple(warnings))


def _with_implied(subqueries: Sequence[SubQuery], question: str) -> tuple[SubQuery, ...]:
    """A `#2` in a subquery says that it waits for the second one, unless the question itself speaks of a #2."""
    own = set(references(question))
    return tuple(
        sub.model_copy(update={"depends_on": tuple(sorted({*sub.depends_on, *implied}))})
        if (implied := [n for n in references(sub.query) if n < position and n not in own])
        else sub
        for position, sub in enumerate(subqueries, 1)
    )


def needed(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, each with those that wait for it."""
    return tuple(
        node.model_copy(update={"needed_by": tuple(other.id for other in nodes if node.id in other.depends_on)})
        for node in nodes
    )


def _different(subqueries: Sequence[SubQuery], question: str) -> tuple[list[tuple[int, SubQuery]], dict[int, int]]:
    """The subqueries that search something new, with their positions (from 1); and position -> number in the tree.

    A repeated sibling shares the number of the one it repeats; what repeats the original question has none.
    """
    numbers = {question_key(question): 0, "": 0}
    useful: list[tuple[int, SubQuery]] = []
    ordinals: dict[int, int] = {}
    for position, sub in enumerate(subqueries, 1):
        key = question_key(sub.query)
        if key not in numbers:
            numbers[key] = len(useful) + 1
            useful.append((position, sub))
        if numbers[key]:
            ordinals[position] = numbers[key]
    return useful, ordinals


def _dependencies(
    parent_id: str, position: int, sub: SubQuery, placed: dict[int, int]
) -> tuple[tuple[str, ...], list[str]]:
    """Ids of the earlier siblings that `sub` waits for, and a sentence for each that is not in the tree."""
    ids: list[str] = []
    lost: list[str] = []
    for wanted in sub.depends_on:
        if wanted in placed and wanted < position:
            ids.append(f"{parent_id}.{placed[wanted]}")
        else:
            lost.append(
                f"Subquestion {shown(sub.query)} was to wait for number {wanted} of its level, "
                "which is not in the tree before it: it runs without."
            )
    return tuple(dict.fromkeys(ids)), lost


def _renumbered(position: int, sub: SubQuery, placed: dict[int, int]) -> str:
    """The query; a `#3` that it waits for follows that sibling to its number in the tree, and goes where none is."""
    lost = {n: "" for n in sub.depends_on if n not in placed or n >= position}
    kept = {n: placed[n] for n in sub.depends_on if n not in lost}
    return renumbered(with_answers(sub.query, lost), kept.get)


def left_out(of: str, beyond: Sequence[SubQuery | PlanEntry], room: int, limits: str) -> str:
    """The warning about the subqueries `of` a node or plan that are `beyond` the room which the `limits` leave."""
    names = "; ".join(shown(sub.query) for sub in beyond)
    return f"{len(beyond)} subquestion(s) of {of} beyond the room for {room} were left out ({limits}): {names}."


def split(budget: int, wants: Sequence[bool]) -> list[int]:
    """Leaves for each child, in order; 0 means that the child is dropped. `wants[i]`: child i asks for refinement.

    The first `budget` children get one leaf each. What is left goes evenly to those of them that want refinement,
    the odd ones to the first; it stays unused if none does. A child's share depends on its siblings alone and never on
    what another branch did with its own, so the order in which replies arrive cannot change the tree. The sum is at
    most `budget`.
    """
    kept = max(0, min(budget, len(wants)))
    shares = [1] * kept + [0] * (len(wants) - kept)
    wanting = [place for place in range(kept) if wants[place]]
    if not wanting:
        return shares
    each, odd = divmod(budget - kept, len(wanting))
    for rank, place in enumerate(wanting):
        shares[place] += each + (1 if rank < odd else 0)
    return shares
