"""No rerank: the fused order stands."""

from __future__ import annotations

from collections.abc import Sequence

from shared.models import Hit
from shared.rerankers.base import Reranked, with_score


class NoReranker:
    """Keeps order and scores; the fused score counts as the rerank score."""

    name = "none"

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:  # noqa: ARG002 (the Protocol's)
        """The hits as they came."""
        return Reranked(hits=tuple(with_score(hit, hit.score) for hit in hits), reranker=self.name)
