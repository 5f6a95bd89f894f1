"""The rerank pool's stage: the configured reranker over the best candidates."""

from __future__ import annotations

from shared.models import Cost
from shared.rerankers.base import Reranked
from shared.settings import stages as s
from workers.search.state import Candidate, SearchState, Tools


def rerank(state: SearchState, options: s.Rerank, tools: Tools) -> SearchState:
    """Replace scores by the reranker's. A reranker that fails leaves the order as it is and a warning."""
    if tools.reranker is None:
        return state.skip("no reranker on this pool", warn=True)
    best = state.candidates[: options.limit]
    before = {candidate.hit.chunk_id: candidate for candidate in best}
    hits = [candidate.hit.model_copy(update={"score": candidate.score}) for candidate in best]
    ranked = tools.reranker.rerank(state.query.text, hits, tools.timeout_s)
    after = []
    for hit in ranked.hits:
        old = before[hit.chunk_id]
        detail: dict[str, float | str] = {"score": hit.score, "by": ranked.reranker}
        if "rerank_raw" in hit.parts:
            detail["raw"] = hit.parts["rerank_raw"]
        after.append(Candidate(hit, old.score, old.effects).plus("rerank", hit.score - old.score, **detail))
    return state.but(
        candidates=tuple(after),  # in the reranker's order: equal scores keep the fused one
        reranked_by=ranked.reranker,
        verdict=ranked.verdict,
        warnings=(*state.warnings, *ranked.warnings),
        cost=state.cost + spent(ranked),
    )


def spent(ranked: Reranked) -> Cost:
    """What a rerank cost: calls of a rerank server, or of the LLM where it gives the scores."""
    if ranked.reranker.startswith("chat"):
        return Cost(
            llm_calls=ranked.calls,
            llm_tokens_in=ranked.tokens_in,
            llm_tokens_out=ranked.tokens_out,
            rerank_documents=ranked.documents,
        )
    return Cost(rerank_calls=ranked.calls, rerank_documents=ranked.documents)
