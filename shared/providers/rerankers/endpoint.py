"""Scores by an HTTP server that speaks the Jina/Cohere shape: POST {base_url}/rerank."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from shared.errors import RamifyError, ReplyError, shown
from shared.providers.gates import Gate
from shared.providers.http import JsonClient
from shared.providers.metering import paid
from shared.providers.rerankers.calibration import ServerScale
from shared.providers.rerankers.call_batcher import CallBatcher
from shared.providers.rerankers.scoring import Request
from shared.settings import Settings
from shared.settings.server_url import with_login

_MAX_FLOAT = sys.float_info.max
#: Most bytes of a score with what stands around it, of a character where documents are sent back, and of the rest.
_SCORE_BYTES, _CHAR_BYTES, _FRAME_BYTES = 1000, 6, 64_000


class EndpointScorer:
    """A rerank model behind HTTP. Scores are the server's own, logits or probabilities.

    Requests with the same query within `batch_ms` share their calls, a text that several ask for is sent once; those
    with different queries go side by side over reused connections.
    """

    def __init__(self, settings: Settings) -> None:
        rerank, url = settings.rerank, with_login(settings.rerank.base_url)
        self.name = f"endpoint:{rerank.model}"
        self._model, self._per_call = rerank.model, rerank.max_documents
        self.calibrated = ServerScale()
        self._batcher = CallBatcher(self._run, rerank.batch_ms / 1000, key=lambda request: request.query)
        gate = Gate("rerank", url, settings.providers)
        self._client = JsonClient(url, rerank.api_key, gate, rerank.attempts, attempt_s=rerank.timeout_s)

    def score(self, request: Request) -> None:
        """Score at most `max_documents` a call. Raises: TransientError, PermanentError, ReplyError."""
        self._batcher.score(request)

    def close(self) -> None:
        self._client.close()

    def _run(self, requests: Sequence[Request], deadline: float) -> None:
        """All texts of requests with one query. A call's result is kept when a later one fails."""
        first = requests[0]
        texts = list(dict.fromkeys(text for request in requests for text in request.open()))
        for start in range(0, len(texts), self._per_call):
            batch = texts[start : start + self._per_call]
            try:
                with paid("rerank", self._model) as call:
                    body = {"model": self._model, "query": first.query, "documents": batch, "top_n": len(batch)}
                    most = _FRAME_BYTES + sum(_SCORE_BYTES + _CHAR_BYTES * len(text) for text in batch)
                    seconds = deadline - time.monotonic()
                    reply = self._client.post("/rerank", body, seconds, call.next_try, most_bytes=most)
            except RamifyError as error:
                first.calls += error.calls
                raise
            first.calls += reply.calls
            found = read_scores(reply.body, len(batch))
            answered = {text: found.get(index) for index, text in enumerate(batch)}
            for request in requests:
                request.scores.update({text: answered[text] for text in request.open() if text in answered})


def read_scores(body: dict[str, Any], count: int) -> dict[int, float]:
    """Index -> score out of a reply to `count` documents; fewer than that is no fault.

    Raises: ReplyError naming the fault: no list of results, an index out of range or twice, a score that is no
    finite number. Then nothing of the reply is believed: its other scores may belong to other documents too.
    """
    results = body.get("results")
    if not isinstance(results, list):
        raise ReplyError('the rerank server\'s reply has no list "results"')
    scores: dict[int, float] = {}
    for entry in results:
        index, score = (entry.get("index"), entry.get("relevance_score")) if isinstance(entry, dict) else (None, None)
        if type(index) is not int or not 0 <= index < count:
            raise ReplyError(f"the rerank server's reply names document {shown(index)} of {count}")
        if index in scores:
            raise ReplyError(f"the rerank server's reply names document {index} twice")
        if (
            not isinstance(score, int | float) or isinstance(score, bool) or not abs(score) <= _MAX_FLOAT
        ):  # NaN, infinity, 10^400
            raise ReplyError(f"the rerank server's reply gives document {index} the score {shown(score)}")
        scores[index] = float(score)
    return scores
