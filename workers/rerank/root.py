"""The merged pool against the original question, once for all identical jobs."""

from __future__ import annotations

from collections.abc import Sequence

from shared.models import Hit, JobRequest
from shared.rerankers.base import Reranked
from workers.merge.tree import LEAF_SHARE
from workers.search.leaf import reranked_once
from workers.search.state import Tools


def leaf_share(request: JobRequest) -> float:
    """How much of a hit's score is what it was worth to its leaf.

    Nothing for a question that refers back to its conversation: what is good for "and the second one?" says nothing,
    and the job's question is the one in context.
    """
    refers_back = bool(request.typed) and request.typed[0].query != request.question
    return 0.0 if refers_back else LEAF_SHARE


def rerank_pool(question: str, hits: Sequence[Hit], tenant: str, tools: Tools) -> Reranked:
    """Best first; calls and tokens are 0 where another job had paid for them. Never raises for a failing reranker."""
    reranker = tools.reranker
    if reranker is None:
        return Reranked(hits=tuple(hits), reranker="none")

    def compute() -> Reranked:
        return reranker.rerank(question, hits, tools.timeout_s)

    parts = {
        "tenant": tenant,
        "question": question,
        "hits": [
            hit.model_dump(mode="json", include={"chunk_id", "title", "heading", "text", "score"}) for hit in hits
        ],
    }
    ranked, result = reranked_once(tools, parts, Reranked, compute)
    if result.warning:
        ranked = ranked.model_copy(update={"warnings": (*ranked.warnings, result.warning)})
    spent_nothing = {"calls": 0, "documents": 0, "tokens_in": 0, "tokens_out": 0}
    return ranked.model_copy(update=spent_nothing) if result.reused else ranked
