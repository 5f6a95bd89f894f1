"""Every reranker's scores on one scale: 0..1, read as the probability that the chunk is relevant. Pure maps.

A map never changes an order: scores are sorted as they came, `parts["rerank_raw"]` keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from shared.providers.rerankers.base import Reranked

NOTHING_RELEVANT = "nothing relevant"
_LEXICAL_SLOPE, _LEXICAL_SHIFT = 17.0, 9.0
_LOGIT_BOUND = 500.0
_ROUNDING = 1e-3


class Scaled(NamedTuple):
    """Scores in 0..1, in the order given; `scale` names the map where one reranker has several."""

    scores: list[float]
    scale: str = ""


class ServerScale:
    """The scale of a server that does not say whether it answers probabilities or logits.

    One score outside 0..1 proves logits, and logits it is for this server from then on; until then scores are taken as
    they are. Results name the scale, so that those from before are not compared with those from after.
    """

    def __init__(self) -> None:
        self._logits = False  # only ever set, so it needs no lock

    def __call__(self, raw: Sequence[float]) -> Scaled:
        """The sigmoid of logits; probabilities as they are, rounding errors clipped."""
        if any(not -_ROUNDING <= score <= 1 + _ROUNDING for score in raw):
            self._logits = True
        if self._logits:
            return Scaled([sigmoid(score) for score in raw], "logits")
        return Scaled([min(1.0, max(0.0, score)) for score in raw])


def from_logits(raw: Sequence[float]) -> Scaled:
    """Cross-encoders: the sigmoid they were trained with."""
    return Scaled([sigmoid(score) for score in raw])


def from_lexical(raw: Sequence[float]) -> Scaled:
    """Lexical scores s: sigmoid(17 s - 9), a logistic fit of "the top hit is relevant" on six sets.

    Half the questions had an answer, a quarter theirs taken out, a quarter belonged to another corpus.
    """
    return Scaled([sigmoid(_LEXICAL_SLOPE * score - _LEXICAL_SHIFT) for score in raw])


def from_marks(raw: Sequence[float]) -> Scaled:
    """Marks of 0 to 10."""
    return Scaled([score / 10 for score in raw])


def sigmoid(logit: float) -> float:
    """1 / (1 + e^-x). NaN stays NaN, which GuardedReranker refuses; the bound keeps exp from overflowing."""
    return logit if math.isnan(logit) else 1 / (1 + math.exp(-max(-_LOGIT_BOUND, min(_LOGIT_BOUND, logit))))


def nothing_relevant(reranked: Reranked, min_relevance: float) -> bool:
    """True when every hit was scored and none reaches `min_relevance` (0: never). Fused scores are no evidence."""
    if min_relevance <= 0 or not all("rerank_raw" in hit.parts for hit in reranked.hits):
        return False
    return all(hit.score < min_relevance for hit in reranked.hits)
