"""Scores by the configured LLM: numbered documents in, a score of 0 to 10 for each out.

Documents and reply are untrusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from shared.errors import RamifyError
from shared.providers.llm.client import ChatClient, LLMReply, spent
from shared.providers.llm.prompts import rerank_prompt
from shared.providers.llm.replies import parse_marks
from shared.providers.llm.room import batches, room_beside
from shared.providers.metering import carried
from shared.providers.rerankers.calibration import from_marks
from shared.providers.rerankers.scoring import Request
from shared.settings import Settings

DOCUMENTS_PER_CALL = 25  # scores get less reliable with longer lists
_CALLS_AT_ONCE = 4


class ChatScorer:
    """The LLM as a reranker: rerank.model, or else llm_model, at llm_base_url."""

    calibrated = staticmethod(from_marks)

    def __init__(self, settings: Settings) -> None:
        """Raises: SettingsError without an LLM."""
        model = settings.rerank.model or settings.llm_model
        self.name = f"chat:{model}"
        self._tokens = settings.llm_prompt_tokens
        self._per_call = min(settings.rerank.max_documents, DOCUMENTS_PER_CALL)
        try_s = min(settings.llm_timeout_s, settings.rerank.timeout_s)
        self._client = ChatClient(settings.model_copy(update={"llm_model": model, "llm_timeout_s": try_s}))

    def score(self, request: Request) -> None:
        """Score in calls of at most 25 documents, and as many as `llm_prompt_tokens` has room for, four at once.

        Raises: the first call's TransientError, PermanentError or ReplyError. The scores
        of the other calls stay.
        """
        texts = request.open()
        room = room_beside(rerank_prompt(request.query, ()), self._tokens)
        asked = list(batches(texts, room, self._per_call))
        if not asked:
            return

        def ask(batch: list[str]) -> LLMReply | RamifyError:
            try:
                return self._client.complete(rerank_prompt(request.query, batch), timeout_s=request.seconds_left())
            except RamifyError as error:
                return error

        with ThreadPoolExecutor(min(_CALLS_AT_ONCE, len(asked)), "rerank-chat") as pool:
            replies = list(pool.map(carried(ask), asked))
        faults: list[RamifyError] = []
        whole = iter(texts)
        for batch, reply in zip(asked, replies, strict=True):
            try:
                _take(request, list(islice(whole, len(batch))), reply)
            except RamifyError as error:
                faults.append(error)
        if faults:
            raise faults[0]

    def close(self) -> None:
        self._client.close()


def _take(request: Request, batch: Sequence[str], reply: LLMReply | RamifyError) -> None:
    """Note one call's scores and cost. Raises: its fault, if it had one."""
    cost = spent(reply) if isinstance(reply, RamifyError) else reply
    request.calls += cost.calls
    request.tokens_in += cost.tokens_in
    request.tokens_out += cost.tokens_out
    if isinstance(reply, RamifyError):
        raise reply
    marks = parse_marks(reply.text, len(batch))
    request.scores.update({text: marks.get(position) for position, text in enumerate(batch)})
