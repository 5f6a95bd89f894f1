"""Rerank by an HTTP server that speaks the Jina/Cohere shape: POST {base_url}/rerank (D6)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from shared.errors import RamifyError, ReplyError, TransientError
from shared.http_client import JsonClient, calls_made
from shared.models import Hit
from shared.rerankers.base import Reranked, document_text, rescored
from shared.settings.sections import Rerank

_ATTEMPTS = 3


class EndpointReranker:
    """A rerank model behind HTTP. Scores are the server's own."""

    def __init__(self, settings: Rerank) -> None:
        self._model = settings.model
        self._per_call = settings.max_documents
        self._client = JsonClient(
            str(settings.base_url), settings.api_key, "rerank server", _ATTEMPTS, attempt_s=settings.timeout_s
        )

    @property
    def name(self) -> str:
        """As "endpoint:MODEL"."""
        return f"endpoint:{self._model}"

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        """Score at most `max_documents` a call, all calls within `timeout_s`.

        Hits that the server leaves out follow the scored ones in fused order, with a warning.
        Raises: TransientError, PermanentError, ReplyError; each carries the `calls` made so far.
        """
        deadline = time.monotonic() + timeout_s
        scores: dict[int, float] = {}
        calls = 0
        for start in range(0, len(hits), self._per_call):
            batch = [document_text(hit) for hit in hits[start : start + self._per_call]]
            try:
                reply = self._client.post("/rerank", self._body(query, batch), _time_left(deadline))
                calls += reply.calls
                found = read_scores(reply.body, len(batch))
            except RamifyError as error:
                error.calls = calls + calls_made(error)
                raise
            scores.update({start + index: score for index, score in found.items()})
        return self._sorted(hits, scores, calls)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _body(self, query: str, documents: list[str]) -> dict[str, Any]:
        return {"model": self._model, "query": query, "documents": documents, "top_n": len(documents)}

    def _sorted(self, hits: Sequence[Hit], scores: dict[int, float], calls: int) -> Reranked:
        if not scores and hits:
            raise ReplyError(f"the rerank server scored none of {len(hits)} documents")
        known = sorted(scores)
        ranked = rescored([hits[i] for i in known], [scores[i] for i in known])
        missing = [hits[i] for i in range(len(hits)) if i not in scores]
        warnings: tuple[str, ...] = ()
        if missing:
            lowest = ranked[-1].score
            ranked += tuple(_unscored(hit, lowest) for hit in missing)
            warnings = (
                f"The rerank server left out {len(missing)} of {len(hits)} documents: they follow in fused order.",
            )
        return Reranked(hits=ranked, reranker=self.name, calls=calls, documents=len(hits), warnings=warnings)


def read_scores(body: dict[str, Any], count: int) -> dict[int, float]:
    """Index -> score out of a reply to `count` documents.

    Raises: ReplyError naming the fault: no list of results, an index out of range or twice, a score that is no
    finite number.
    """
    results = body.get("results")
    if not isinstance(results, list):
        raise ReplyError('the rerank server\'s reply has no list "results"')
    scores: dict[int, float] = {}
    for entry in results:
        index, score = (entry.get("index"), entry.get("relevance_score")) if isinstance(entry, dict) else (None, None)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise ReplyError(f"the rerank server's reply names document {index!r} of {count}")
        if index in scores:
            raise ReplyError(f"the rerank server's reply names document {index} twice")
        if not isinstance(score, int | float) or isinstance(score, bool) or not math.isfinite(score):
            raise ReplyError(f"the rerank server's reply gives document {index} the score {score!r}")
        scores[index] = float(score)
    return scores


def _time_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TransientError("the rerank server took longer than the time that was left")
    return left


def _unscored(hit: Hit, lowest: float) -> Hit:
    return hit.model_copy(update={"score": lowest, "parts": {**hit.parts, "fused": hit.score}})
