"""Turns a reranker's failure into a warning: the hits keep their fused order."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from shared.errors import DeadlineError, RamifyError, ReplyError, TransientError
from shared.models import Hit
from shared.providers.fallbacks import fell_back
from shared.providers.http_deadline import until
from shared.providers.llm.client import spent
from shared.providers.rerankers.base import Reranked, Reranker, unscored
from shared.providers.rerankers.calibration import NOTHING_RELEVANT, nothing_relevant


class GuardedReranker:
    """A reranker that never raises, and says "nothing relevant" below `min_relevance`. Wraps any other."""

    def __init__(self, inner: Reranker, min_relevance: float = 0.0) -> None:
        self.name, self._inner, self._min_relevance = inner.name, inner, min_relevance
        self._closed = False

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        """As the wrapped reranker, or the fused order with a warning and `reranker="none (NAME failed)"`."""
        if not hits:
            return self._with_verdict(Reranked(reranker=self.name))
        try:
            if self._closed:
                raise TransientError("it is closed")
            if timeout_s <= 0:
                raise DeadlineError("no time is left for it")
            with until(time.monotonic() + timeout_s):
                reranked = self._inner.rerank(query, hits, timeout_s)
            for hit in reranked.hits:
                if not math.isfinite(hit.score):  # NaN would silently break every later sort
                    raise ReplyError(f"it gave the score {hit.score} to chunk {hit.chunk_id}")
        except RamifyError as error:
            return self._fused(hits, error)
        except RuntimeError:
            if not self._closed:  # closed under a call: httpx then raises this
                raise
            return self._fused(hits, TransientError("it was closed"))
        return self._with_verdict(reranked)

    def close(self) -> None:
        """Close the wrapped reranker's connections, if it has any. Calls that come later get the fused order."""
        self._closed = True
        getattr(self._inner, "close", lambda: None)()

    def _with_verdict(self, reranked: Reranked) -> Reranked:
        verdict = NOTHING_RELEVANT if nothing_relevant(reranked, self._min_relevance) else None
        return reranked.model_copy(update={"verdict": verdict})

    def _fused(self, hits: Sequence[Hit], error: RamifyError) -> Reranked:
        fell_back("rerank", error)
        reason, cost = str(error).strip().rstrip("."), spent(error)
        return Reranked(
            hits=tuple(unscored(hit, hit.score) for hit in hits),
            reranker=f"none ({self.name} failed)",
            failed=self.name,
            warnings=(f"The reranker {self.name} failed, so the results stand in their fused order: {reason}.",),
            **cost.model_dump(exclude={"text", "cut"}),
        )


class Unusable:
    """In place of a reranker that cannot be built from its settings: raises the reason at every call."""

    def __init__(self, name: str, error: RamifyError) -> None:
        self.name, self._reason = name, str(error)

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:  # noqa: ARG002
        """Raises: RamifyError, always."""
        raise RamifyError(self._reason)
