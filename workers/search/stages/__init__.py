"""The stages and the registry that finds them by name. A stage: (state, options, tools) -> state.

Pure except for calls of the store, the encoders, the LLM and the reranker, which `Tools` holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workers.search.stages import arms, context, diversity, edges, expansion, fusion, hierarchy, hops, rescoring, truth
from workers.search.state import SearchState, Tools

StageFunction = Callable[[SearchState, Any, Tools], SearchState]

STAGES: Mapping[str, StageFunction] = {
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
    "rerank": rescoring.rerank,
    "linked": edges.linked,
    "blend": rescoring.blend,
}
