"""The merged pool against the original question, once for all identical jobs (B7, G5)."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import RamifyError
from shared.models import Hit
from shared.rerankers.base import Reranked
from workers.search.tools import Tools


class _FellBackError(RamifyError):
    """Carries a result out of the cache that must not be kept: a fallback is shown, never reused."""

    def __init__(self, ranked: Reranked) -> None:
        super().__init__("the reranker fell back")
        self.ranked = ranked


def rerank_pool(question: str, hits: Sequence[Hit], tenant: str, tools: Tools) -> Reranked:
    """Best first; calls and tokens are 0 where another job had paid for them. Never raises for a failing reranker."""
    reranker, cache = tools.reranker, tools.cache
    if reranker is None:
        return Reranked(hits=tuple(hits), reranker="none")

    def compute() -> Reranked:
        ranked = reranker.rerank(question, hits, tools.timeout_s)
        if ranked.warnings and cache is not None:
            raise _FellBackError(ranked)
        return ranked

    if cache is None:
        return compute()
    parts = {
        "tenant": tenant,
        "question": question,
        "reranker": reranker.name,
        "settings": tools.settings.rerank.model_dump(mode="json", exclude={"api_key"}),
        "hits": [
            hit.model_dump(mode="json", include={"chunk_id", "title", "heading", "text", "score"}) for hit in hits
        ],
    }
    wait = min(tools.settings.cache.wait_s, tools.timeout_s)
    try:
        ranked, outcome = cache.get_or_compute("rerank", parts, Reranked, compute, wait_s=wait)
    except _FellBackError as fallback:
        return fallback.ranked
    if outcome.warning:
        ranked = ranked.model_copy(update={"warnings": (*ranked.warnings, outcome.warning)})
    spent_nothing = {"calls": 0, "documents": 0, "tokens_in": 0, "tokens_out": 0}
    return ranked.model_copy(update=spent_nothing) if outcome.reused else ranked
