"""Trees that come with the request: a plan of the caller's, or typed queries; the question's own leaf first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator.planning.tree import ORIGINAL_ID, Grown, first_level, needed, original_leaf
from shared.errors import shown
from shared.models import ROOT_ID, Decomposition, Facet, Filters, Node, NodeKind, Plan, PlanEntry, SubQuery
from shared.models.session import TypedQuery
from shared.references import renumbered
from shared.settings.sections import Decomposition as Limits


def own_tree(question: str, plan: Plan, limits: Limits) -> Grown:
    """Every entry a node; those that others refine are branches that have grown already.

    Leaves beyond decomposition.max_total_leaves are left out by name. In a plan of one level a subquestion that repeats
    another one, or the question itself, is searched once.
    """
    if not any(entry.under for entry in plan):
        subqueries = (
            SubQuery(dimension=entry.dimension, query=entry.query, depends_on=entry.depends_on) for entry in plan
        )
        wide = limits.model_copy(update={"max_children": limits.max_total_leaves})
        return first_level(question, Decomposition(subqueries=tuple(subqueries), by="request"), wide)
    kept, beyond = _kept(plan, limits.max_total_leaves - 1)
    warnings = () if not beyond else (_left_out(beyond, limits.max_total_leaves - 1),)
    return Grown(nodes=(original_leaf(question), *needed(list(_nodes(plan, kept)))), warnings=warnings)


def _kept(plan: Plan, room: int) -> tuple[set[int], list[PlanEntry]]:
    """Places (from 1) that stay, and the leaves that do not; a branch stays while something under it does."""
    branches = {entry.under for entry in plan}
    leaves = [place for place in range(1, len(plan) + 1) if place not in branches]
    kept = set(leaves[:room])
    for place in range(len(plan), 0, -1):  # those under an entry stand behind it
        under = plan[place - 1].under
        if place in kept and under is not None:
            kept.add(under)
    return kept, [plan[place - 1] for place in leaves[room:]]


def _nodes(plan: Plan, kept: set[int]) -> Iterator[Node]:
    ids: dict[int, str] = {}
    numbers: dict[int, int] = {}
    children = Counter[str]()
    branches = {entry.under for entry in plan}
    for place, entry in enumerate(plan, 1):
        if place not in kept:
            continue
        parent = ids[entry.under] if entry.under is not None else ROOT_ID
        children[parent] += 1
        ids[place], numbers[place] = f"{parent}.{children[parent]}", children[parent]
        yield Node(
            id=ids[place],
            parent_id=parent,
            level=parent.count(".") + 1,
            facet=entry.dimension,
            query=renumbered(entry.query, {other: numbers[other] for other in entry.depends_on if other in kept}.get),
            kind=NodeKind.BRANCH if place in branches else NodeKind.LEAF,
            depends_on=tuple(ids[other] for other in entry.depends_on if other in kept),
        )


def _left_out(beyond: Sequence[PlanEntry], room: int) -> str:
    names = "; ".join(shown(entry.query) for entry in beyond)
    return (
        f"{len(beyond)} subquestion(s) of the plan beyond the room for {room} were left out "
        f"(decomposition.max_total_leaves): {names}."
    )


def typed_leaves(queries: Sequence[TypedQuery], filters: Filters) -> Grown:
    """One leaf a query, the question itself first ("0.0"); none is refined.

    A query for a kind that the request's own filter leaves out is not searched, and named in a warning.
    """
    nodes, out = list[Node](), list[str]()
    for query in queries:
        if filters.kinds and query.kinds and not set(query.kinds) & set(filters.kinds):
            out.append(
                f"The query for the kind {query.kinds[0]} was left out: only {', '.join(filters.kinds)} is asked for."
            )
            continue
        first = not nodes
        nodes.append(
            Node(
                id=ORIGINAL_ID if first else f"{ROOT_ID}.{len(nodes)}",
                parent_id=ROOT_ID,
                level=1,
                facet=Facet.ORIGINAL if first else Facet.CORE,
                query=query.query,
                kinds=query.kinds,
            )
        )
    return Grown(nodes=tuple(nodes), warnings=tuple(out))
