"""The stages and the registry that finds them by name. A stage: (state, options, tools) -> state.

Pure but for the arms' one round trip, the encoders and the reranker, which they are handed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workers.search.stages import (
    arms,
    blend,
    cosine,
    diversity,
    edges,
    enrich,
    expansion,
    fusion,
    hierarchy,
    hops,
    linked,
    neighbours,
    prior,
    rerank,
    signal,
    truth,
)
from workers.search.state import State
from workers.search.tools import Tools

Run = Callable[[State, Any, Tools], State]

STAGES: Mapping[str, Run] = {
    "strong_signal": signal.strong_signal,
    "expansion": expansion.expand,
    "lexical": arms.lexical,
    "dense": arms.dense,
    "trigram": arms.trigram,
    "fusion": fusion.fuse_arms,
    "hierarchy": hierarchy.hierarchy,
    "neighbours": neighbours.neighbours,
    "hops": hops.hops,
    "chain": hops.chain,
    "edges": edges.edges,
    "truth": truth.truth,
    "cosine": cosine.cosine,
    "sources": prior.sources,
    "backlinks": prior.backlinks,
    "recency": prior.recency,
    "facet": prior.facet,
    "exclude": prior.exclude,
    "dedup": diversity.dedup,
    "caps": diversity.caps,
    "mmr": diversity.mmr,
    "limit": diversity.limit,
    "enrich": enrich.enrich,
    "rerank": rerank.rerank,
    "linked": linked.linked,
    "blend": blend.blend,
}
