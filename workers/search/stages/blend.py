"""Position-aware blending: the top of the fused list is trusted, its tail belongs to the reranker."""

from __future__ import annotations

from shared.settings import stages as s
from workers.search.state import Candidate, State, by_score
from workers.search.tools import Tools


def blend(state: State, options: s.Blend, tools: Tools) -> State:  # noqa: ARG001
    """W * fused / best fused + (1 - w) * rerank; w by the rank in the fused list: 1-3, 4-10, 11 and on."""
    fused = {candidate.hit.chunk_id: _before_rerank(candidate) for candidate in state.candidates}
    best = max(fused.values(), default=0.0)
    order = sorted(fused, key=lambda chunk_id: (-fused[chunk_id], chunk_id))
    ranks = {chunk_id: rank for rank, chunk_id in enumerate(order, start=1)}
    mixed = []
    for candidate in state.candidates:
        chunk_id = candidate.hit.chunk_id
        weight = _weight(ranks[chunk_id], options)
        scaled = fused[chunk_id] / best if best > 0 else 0.0
        score = weight * scaled + (1 - weight) * candidate.score
        mixed.append(
            candidate.plus("blend", score - candidate.score, rank=float(ranks[chunk_id]), weight=weight, fused=scaled)
        )
    return state.but(candidates=by_score(mixed))


def _weight(rank: int, options: s.Blend) -> float:
    if rank <= 3:
        return options.first
    return options.middle if rank <= 10 else options.rest


def _before_rerank(candidate: Candidate) -> float:
    total = 0.0
    for effect in candidate.effects:
        if effect.stage == "rerank":
            break
        total += effect.effect
    return total
