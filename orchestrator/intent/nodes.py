"""Typed queries as the leaves of a job's one chord. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.planning.tree import ORIGINAL_ID, Grown
from shared.models import ROOT_ID, Facet, Filters, Node
from shared.models.session import TypedQuery


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
