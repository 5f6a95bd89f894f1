"""How nodes of a tree are handed to the scripts. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from shared.models import Node, NodeKind
from shared.models.base import Model


def triples(nodes: Sequence[Node]) -> list[str]:
    """Id, first state and JSON of every node, one after the other."""
    return [part for node in nodes for part in (node.id, _first_state(node), as_json(node))]


def as_json(value: Model) -> str:
    """One line of JSON, as plain Redis clients read it."""
    return json.dumps(value.model_dump(mode="json"), ensure_ascii=False)


def _first_state(node: Node) -> str:
    if node.kind is NodeKind.BRANCH:
        return "open"
    return "waiting" if node.depends_on else "pending"
