"""Scores by the configured LLM: numbered documents in, a mark of 0 to 10 for each out (D6). Both are untrusted."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from shared.budget import carried
from shared.errors import RamifyError, ReplyError, shown
from shared.llm.client import ChatClient, LLMReply, spent
from shared.llm.prompts import escaped, filled
from shared.llm.xml_element import read_element
from shared.rerankers.calibration import Scaled, from_marks
from shared.rerankers.scoring import Request
from shared.settings import Settings

_CHARS_PER_CALL = 24_000
_DOCUMENTS_PER_CALL = 25  # marks of longer lists grow careless
_CALLS_AT_ONCE = 4
_BEST_MARK = 10
_MARK = re.compile(r"\d{1,2}(?:\.\d{1,4})?")
_ID = re.compile(r"[0-9]{1,4}")


class ChatScorer:
    """The LLM as a reranker: rerank.model, or else llm_model, at llm_base_url. The client is built on first use."""

    def __init__(self, settings: Settings) -> None:
        self._model = settings.rerank.model or settings.llm_model
        self._settings = settings.model_copy(update={"llm_model": self._model})
        self._per_call = min(settings.rerank.max_documents, _DOCUMENTS_PER_CALL)
        self._building = threading.Lock()
        self._built: ChatClient | None = None

    @property
    def name(self) -> str:
        """As "chat:MODEL"."""
        return f"chat:{self._model}"

    def score(self, request: Request) -> None:
        """Score in calls of at most 25 documents and about 24,000 characters, four at once.

        Raises: SettingsError without an LLM; the first call's TransientError, PermanentError or ReplyError. The marks
        of the other calls stay.
        """
        client = self._client()
        batches = list(_batches(request.open(), self._per_call))
        if not batches:
            return

        def ask(batch: list[str]) -> LLMReply | RamifyError:
            try:
                return client.complete(rerank_prompt(request.query, batch), timeout_s=request.seconds_left())
            except RamifyError as error:
                return error

        with ThreadPoolExecutor(min(_CALLS_AT_ONCE, len(batches)), "rerank-chat") as pool:
            replies = list(pool.map(carried(ask), batches))
        faults = [
            fault for batch, reply in zip(batches, replies, strict=True) if (fault := _take(request, batch, reply))
        ]
        if faults:
            raise faults[0]

    def calibrated(self, raw: Sequence[float]) -> Scaled:
        """Tenths of the marks."""
        return from_marks(raw)

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        with self._building:
            if self._built is not None:
                self._built.close()
                self._built = None

    def _client(self) -> ChatClient:
        with self._building:
            if self._built is None:
                self._built = ChatClient(self._settings)
            return self._built


def rerank_prompt(query: str, documents: Sequence[str]) -> str:
    """Asks for a mark of 0 to 10 for each of `documents`, numbered from 1."""
    numbered = "\n".join(
        f'<document id="{number}">{escaped(text)}</document>' for number, text in enumerate(documents, start=1)
    )
    return filled("rerank", {"user_query": escaped(query), "documents": numbered, "count": str(len(documents))})


def parse_marks(text: str, count: int) -> dict[int, float]:
    """Position (from 0) -> mark of 0 to 10 out of the first <scores> element; fewer than `count` is no fault.

    Raises: ReplyError naming the first fault: no element, cut off, other XML, an id that is unknown or stands twice, no
    mark of 0 to 10.
    """
    marks: dict[int, float] = {}
    for element in read_element(text, "scores", "s"):
        if element.tag.casefold() != "s" or len(element):
            raise ReplyError(f"the <scores> hold {shown(element.tag)} where only <s> may stand")
        name, mark = element.get("id", ""), (element.text or "").strip()
        position = int(name) - 1 if _ID.fullmatch(name) else -1
        if not 0 <= position < count:
            raise ReplyError(f"the <scores> name document {shown(name)} of {count}")
        if position in marks:
            raise ReplyError(f"the <scores> name document {name} twice")
        if not _MARK.fullmatch(mark) or float(mark) > _BEST_MARK:
            raise ReplyError(f"the <scores> give document {name} the mark {shown(mark)}, none of 0 to 10")
        marks[position] = float(mark)
    if not marks:
        raise ReplyError("the <scores> hold no <s>")
    return marks


def _batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == most or size + len(text) > _CHARS_PER_CALL):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _take(request: Request, batch: Sequence[str], reply: LLMReply | RamifyError) -> RamifyError | None:
    """Note one call's marks and cost; its fault, if it had one."""
    cost = spent(reply) if isinstance(reply, RamifyError) else reply
    request.calls += cost.calls
    request.tokens_in += cost.tokens_in
    request.tokens_out += cost.tokens_out
    if isinstance(reply, RamifyError):
        return reply
    try:
        marks = parse_marks(reply.text, len(batch))
    except ReplyError as error:
        return error
    request.scores.update({text: marks.get(position) for position, text in enumerate(batch)})
    return None
