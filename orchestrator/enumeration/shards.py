"""Shares out a scan over leaves: equal ranges of the ids' space, which hashes fill evenly. Pure."""

from __future__ import annotations

import math
import uuid

from orchestrator.planning.tree import original_leaf
from shared.models import ROOT_ID, Facet, Node
from shared.models.shard import Shard

_SPACE = 1 << 128


def shards(documents: int, size: int, most: int) -> tuple[Shard, ...]:
    """At most `most` ranges of about `size` of `documents` documents each; together every id, each once."""
    count = min(max(1, math.ceil(documents / size)), most)
    bounds = ["", *(str(uuid.UUID(int=_SPACE * number // count)) for number in range(1, count)), ""]
    return tuple(
        Shard(number=number, of=count, start=bounds[number - 1], stop=bounds[number]) for number in range(1, count + 1)
    )


def nodes(question: str, understood: str, parts: tuple[Shard, ...]) -> tuple[Node, ...]:
    """The question's own leaf, then a leaf for each shard."""
    leaves = (
        Node(
            id=f"{ROOT_ID}.{part.number}",
            parent_id=ROOT_ID,
            level=1,
            facet=Facet.CORE,
            query=f"part {part.number} of {part.of}: {understood}",
            shard=part,
        )
        for part in parts
    )
    return (original_leaf(question), *leaves)
