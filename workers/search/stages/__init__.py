"""The stages and the registry that finds them by name. A stage: (state, options, tools) -> state.

Pure but for the arms' one round trip, the encoders and the reranker, which they are handed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workers.search.stages import arms, context, diversity, edges, expansion, fusion, hierarchy, hops, rescoring, truth
from workers.search.stages import rescoring as rerank
from workers.search.state import SearchState, Tools

Run = Callable[[SearchState, Any, Tools], SearchState]

STAGES: Mapping[str, Run] = {
    "strong_signal": expansion.strong_signal,
    "expansion": expansion.expand,
    "lexical": arms.lexical,
    "dense": arms.dense,
    "trigram": arms.trigram,
    "fusion": fusion.fuse_arms,
    "hierarchy": hierarchy.hierarchy,
    "neighbours": context.neighbours,
    "hops": hops.hops,
    "chain": hops.chain,
    "edges": edges.edges,
    "truth": truth.truth,
    "cosine": rescoring.cosine,
    "sources": rescoring.sources,
    "backlinks": rescoring.backlinks,
    "recency": rescoring.recency,
    "facet": rescoring.facet,
    "exclude": rescoring.exclude,
    "dedup": diversity.dedup,
    "caps": diversity.caps,
    "mmr": diversity.mmr,
    "limit": diversity.limit,
    "enrich": context.enrich,
    "rerank": rerank.rerank,
    "linked": edges.linked,
    "blend": rescoring.blend,
}
