"""The one place where a reranker's failure becomes a warning: the fused order stands in, and says so (F10)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shared.errors import RamifyError, ReplyError, TransientError
from shared.http_client import calls_made
from shared.models import Hit
from shared.rerankers.base import Reranked, Reranker


class Guarded:
    """A reranker that never raises. Wraps any other."""

    def __init__(self, inner: Reranker) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """The wrapped reranker's name."""
        return self._inner.name

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        """As the wrapped reranker, or the fused order with a warning and `reranker="none (NAME failed)"`."""
        if not hits:
            return Reranked(reranker=self.name)
        try:
            if timeout_s <= 0:
                raise TransientError("no time is left for it")
            reranked = self._inner.rerank(query, hits, timeout_s)
            _check_scores(reranked.hits)
        except RamifyError as error:
            return self._fused(hits, error)
        return reranked

    def close(self) -> None:
        """Close the wrapped reranker's connections, if it has any."""
        close = getattr(self._inner, "close", None)
        if close is not None:
            close()

    def _fused(self, hits: Sequence[Hit], error: RamifyError) -> Reranked:
        kept = tuple(hit.model_copy(update={"parts": {**hit.parts, "fused": hit.score}}) for hit in hits)
        reason = str(error).strip().rstrip(".")
        return Reranked(
            hits=kept,
            reranker=f"none ({self.name} failed)",
            calls=calls_made(error),
            warnings=(f"The reranker {self.name} failed, so the results stand in their fused order: {reason}.",),
        )


def _check_scores(hits: Sequence[Hit]) -> None:
    """NaN would break every later sort silently."""
    bad = next((hit for hit in hits if not math.isfinite(hit.score)), None)
    if bad is not None:
        raise ReplyError(f"it gave the score {bad.score} to chunk {bad.chunk_id}")
