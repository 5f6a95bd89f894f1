"""Puts the scores of a reranker that needs no model on the common scale (G4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shared.models import Hit
from shared.rerankers.base import Reranked, Reranker, with_score
from shared.rerankers.calibration import Scaled


class Calibrated:
    """`inner` with its scores mapped by `scale`; the order stays."""

    def __init__(self, inner: Reranker, scale: Callable[[Sequence[float]], Scaled]) -> None:
        self._inner, self._scale = inner, scale

    @property
    def name(self) -> str:
        """The wrapped reranker's name."""
        return self._inner.name

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        """As the wrapped reranker."""
        reranked = self._inner.rerank(query, hits, timeout_s)
        fused = {hit.chunk_id: hit.score for hit in hits}
        scores = self._scale([hit.score for hit in reranked.hits]).scores
        mapped = tuple(
            with_score(hit.model_copy(update={"score": fused[hit.chunk_id]}), score, hit.score)
            for hit, score in zip(reranked.hits, scores, strict=True)
        )
        return reranked.model_copy(update={"hits": mapped})
