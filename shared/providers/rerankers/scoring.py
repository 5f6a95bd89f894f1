"""Ranks hits by a model's scores of their texts: windows, best window, calibration, documents left out.

Scorers only score; how a document becomes texts and a score becomes a rank is decided here.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from shared.errors import RamifyError, ReplyError, TransientError
from shared.language.text import CJK
from shared.models import Hit
from shared.providers.fallbacks import fell_back
from shared.providers.llm.client import LLMReply, with_cost
from shared.providers.rerankers.base import Reranked, unscored, with_score
from shared.providers.rerankers.calibration import Scaled
from shared.tracing.spans import current

#: Part of a window that the next one repeats: a sentence on the border is whole in one of the two.
_OVERLAP = 0.1
#: Title and heading stand before each window while they take at most one part in so many of it.
_LEAD_SHARE = 4
_MIN_WIDTH = 60
_ENDS = re.compile(r"\n+|(?<=[.!?;])\s+|[。！？；]+\s*")
_SPACES = re.compile(r"\s+")
_WIDE = re.compile(f"[{CJK}]")


@dataclass(slots=True, eq=False)
class Request:
    """Texts to score against `query` by `deadline` (on `time.monotonic`), how far that has come, and its cost.

    `scores` holds each text that was answered; None: the model was asked and left it out. A scorer fills it as it
    goes, so what is done when a fault or the deadline comes is not lost.
    """

    query: str
    texts: tuple[str, ...]
    deadline: float
    scores: dict[str, float | None] = field(default_factory=dict)
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    #: Of the span that it is for.
    traceparent: str = field(default_factory=current)

    def open(self) -> list[str]:
        """The texts without an answer, each once."""
        return [text for text in dict.fromkeys(self.texts) if text not in self.scores]

    def seconds_left(self) -> float:
        """Raises: TransientError when the time is up."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            known = len(set(self.texts)) - len(self.open())
            raise TransientError(f"{known} of {len(set(self.texts))} texts were scored when the time was up")
        return left


class Scorer(Protocol):
    """A model that scores texts against a query; any scale, higher is better. Called from many threads.

    `name` is provider and model. `calibrated` maps the scores of one rerank to 0..1, in the same order.
    """

    name: str

    @property
    def calibrated(self) -> Callable[[Sequence[float]], Scaled]: ...

    def score(self, request: Request) -> None:
        """Fill `request.scores`.

        Raises: TransientError, PermanentError or ReplyError; what was filled before counts.
        """

    def close(self) -> None:
        """Let go of connections."""


class ScoringReranker:
    """A `Reranker` around a scorer. Chunks longer than `window_chars` are scored in windows; the best one counts.

    Results add the scale to its name where a scorer has several: "endpoint:m (logits)".
    """

    def __init__(self, scorer: Scorer, window_chars: int) -> None:
        self.name, self._scorer, self._window_chars = scorer.name, scorer, window_chars

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        """Score all windows of all hits. Hits without a score follow in fused order, with a warning.

        Raises: what the scorer raises, when it has scored nothing; the error carries the cost.
        """
        pieces = [document_windows(hit, self._window_chars) for hit in hits]
        texts = tuple(text for windows in pieces for text in windows)
        request = Request(query, texts, time.monotonic() + timeout_s)
        fault: RamifyError | None = None
        try:
            self._scorer.score(request)
        except RamifyError as error:
            fault = error
        raw = [
            max((score for text in texts if (score := request.scores.get(text)) is not None), default=None)
            for texts in pieces
        ]
        if all(score is None for score in raw):
            cost = LLMReply(text="", calls=request.calls, tokens_in=request.tokens_in, tokens_out=request.tokens_out)
            raise with_cost(fault or ReplyError(f"it scored none of {len(hits)} documents"), cost)
        in_part = sum(
            any(request.scores.get(text) is None for text in windows)
            for windows, score in zip(pieces, raw, strict=True)
            if score is not None
        )
        if in_part or None in raw:
            fell_back("rerank", fault or ReplyError(f"it scored {len(request.scores)} of {len(texts)} texts"))
        ranked, scale = self._ranked(hits, raw)
        return Reranked(
            hits=ranked,
            reranker=f"{self.name} ({scale})" if scale else self.name,
            calls=request.calls,
            documents=sum(text in request.scores for text in texts),
            tokens_in=request.tokens_in,
            tokens_out=request.tokens_out,
            warnings=tuple(self._warnings(raw, in_part, fault)),
        )

    def close(self) -> None:
        self._scorer.close()

    def _ranked(self, hits: Sequence[Hit], raw: Sequence[float | None]) -> tuple[tuple[Hit, ...], str]:
        """Scored hits best first by the raw score, since a map may round; then the others below the last of them."""
        scored = sorted(
            ((score, hit) for hit, score in zip(hits, raw, strict=True) if score is not None), key=lambda pair: -pair[0]
        )
        scores, scale = self._scorer.calibrated([score for score, _ in scored])
        ranked = [with_score(hit, new, old) for new, (old, hit) in zip(scores, scored, strict=True)]
        rest = [hit for hit, score in zip(hits, raw, strict=True) if score is None]
        step = scores[-1] / (len(rest) + 1)
        ranked += [unscored(hit, scores[-1] - step * place) for place, hit in enumerate(rest, start=1)]
        return tuple(ranked), scale

    def _warnings(self, raw: Sequence[float | None], in_part: int, fault: RamifyError | None) -> Iterable[str]:
        missing = sum(score is None for score in raw)
        why = f": {str(fault).strip().rstrip('.')}" if fault else ""
        if missing:
            yield (
                f"The reranker {self.name} left out {missing} of {len(raw)} documents, "
                f"so they follow in fused order{why}."
            )
        if in_part:
            yield f"The reranker {self.name} read {in_part} of {len(raw)} documents only in part{why}."


def document_windows(hit: Hit, most: int) -> list[str]:
    """The chunk as texts of at most `most` characters (a CJK character counts as two), at least one.

    Each window begins with title and heading; where these alone take more than a quarter, they are cut like the rest.
    """
    whole = hit.full_text
    if width(whole) <= most:
        return [whole]
    lead = whole.removesuffix(hit.text)
    if width(lead) * _LEAD_SHARE > most:
        return windows(whole, most)
    return [lead + piece for piece in windows(hit.text, most - width(lead))]


def windows(text: str, most: int) -> list[str]:
    """`text` in overlapping pieces of at most `most` characters, cut at ends of sentences or lines where there are."""
    return [text[start:end] for start, end in spans(text, most)]


def fitting(text: str, count: Callable[[str], int], room: int) -> list[str]:
    """`text` in overlapping pieces of at most `room` tokens, as `count` counts them; whole if it fits.

    Pieces of a few words stay as they are, however many tokens they have.
    """
    tokens, wide = count(text), width(text)
    if tokens <= room or wide <= _MIN_WIDTH:
        return [text]
    most = max(_MIN_WIDTH, int(wide * 0.9 * room / tokens))
    return [fine for piece in windows(text, min(most, wide - 1)) for fine in fitting(piece, count, room)]


def spans(text: str, most: int) -> list[tuple[int, int]]:
    """Start and end of each window: they cover the whole text, and each starts before the end of the one before."""
    widths = [0, *accumulate(1 + bool(_WIDE.match(char)) for char in text)]
    ends = [match.end() for match in _ENDS.finditer(text)]
    spaces = [match.end() for match in _SPACES.finditer(text)]
    found: list[tuple[int, int]] = []
    start = 0
    while widths[-1] - widths[start] > most:
        limit = max(start + 1, bisect_right(widths, widths[start] + most) - 1)
        end = _last(ends, (start + limit) // 2, limit) or _last(spaces, (start + limit) // 2, limit) or limit
        found.append((start, end))
        back = max(start + 1, bisect_left(widths, widths[end] - int(most * _OVERLAP)))
        start = _first(ends, back, end) or _first(spaces, back, end) or back
    found.append((start, len(text)))
    return found


def width(text: str) -> int:
    """Characters of `text`, CJK ones counted twice: they hold about twice as many tokens."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))


def _last(offsets: list[int], after: int, until: int) -> int | None:
    """The last offset in (after, until]."""
    at = bisect_right(offsets, until)
    return offsets[at - 1] if at and offsets[at - 1] > after else None


def _first(offsets: list[int], start: int, before: int) -> int | None:
    """The first offset in [start, before)."""
    at = bisect_left(offsets, start)
    return offsets[at] if at < len(offsets) and offsets[at] < before else None
