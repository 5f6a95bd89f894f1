"""Rerankers: sort the hits of a query by relevance. One file each, one registry."""

from __future__ import annotations

from collections.abc import Callable

from shared.errors import RamifyError, SettingsError
from shared.providers.rerankers.base import NoReranker, Reranked, Reranker
from shared.providers.rerankers.calibration import NOTHING_RELEVANT, nothing_relevant
from shared.providers.rerankers.chat import ChatScorer
from shared.providers.rerankers.endpoint import EndpointScorer
from shared.providers.rerankers.fastembed_cross import CrossEncoderScorer
from shared.providers.rerankers.guarded import GuardedReranker, Unusable
from shared.providers.rerankers.lexical import LexicalReranker
from shared.providers.rerankers.scoring import Scorer, ScoringReranker
from shared.settings import Settings

__all__ = ["NOTHING_RELEVANT", "GuardedReranker", "Reranked", "Reranker", "nothing_relevant", "reranker"]

_SCORERS: dict[str, Callable[[Settings], Scorer]] = {
    "endpoint": EndpointScorer,
    "fastembed": lambda settings: CrossEncoderScorer(settings.rerank),
    "chat": ChatScorer,
}
_WITHOUT_MODEL: dict[str, Callable[[], Reranker]] = {"lexical": LexicalReranker, "none": NoReranker}


def reranker(settings: Settings) -> GuardedReranker:
    """The reranker that `settings.rerank` names. It never raises: a failure leaves the fused order and a warning.

    Build it after a fork, share it between threads, close it at the end: some hold connections.
    """
    provider, least = settings.rerank.provider, settings.rerank.min_relevance
    try:
        if provider in _WITHOUT_MODEL:
            return GuardedReranker(_WITHOUT_MODEL[provider](), least)
        if provider in _SCORERS:
            return GuardedReranker(ScoringReranker(_SCORERS[provider](settings), settings.rerank.window_chars), least)
        names = ", ".join(sorted({*_SCORERS, *_WITHOUT_MODEL}))
        raise SettingsError("rerank.provider", provider, f"use one of {names}")
    except RamifyError as error:
        return GuardedReranker(Unusable(provider, error), least)
