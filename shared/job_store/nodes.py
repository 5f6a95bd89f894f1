"""How nodes of a tree are handed to the scripts. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from shared.models import Node, NodeKind
from shared.models.base import Model


def triples(nodes: Sequence[Node]) -> list[str]:
    """Id, first state and JSON of every node, one after the other. A branch that comes with its children has grown."""
    grown = grown_branches(nodes)
    return [
        part for node in nodes for part in (node.id, "grown" if node.id in grown else _first_state(node), as_json(node))
    ]


def grown_branches(nodes: Iterable[Node]) -> frozenset[str]:
    """Ids of the branches whose children are among `nodes`: nothing is left to do for them."""
    return frozenset(node.parent_id for node in nodes if node.parent_id is not None)


def as_json(value: Model) -> str:
    """One line of JSON, as plain Redis clients read it."""
    return json.dumps(value.model_dump(mode="json"), ensure_ascii=False)


def _first_state(node: Node) -> str:
    """A leaf comes bound when a retry takes it over: it waits for nothing."""
    if node.kind is NodeKind.BRANCH:
        return "open"
    return "waiting" if node.depends_on and node.bound_by is None else "pending"
