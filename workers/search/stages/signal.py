"""Strong signal: when BM25 alone is sure, rewriting the question would add nothing but cost."""

from __future__ import annotations

from qdrant_client import models

from shared.settings import stages as s
from shared.store import SPARSE, to_filter, to_sparse
from workers.search.state import State
from workers.search.tools import Tools


def strong_signal(state: State, options: s.StrongSignal, tools: Tools) -> State:
    """Two best BM25 hits of the question; `sure` when the first is high and far ahead."""
    store, sparse = tools.need_store()
    vector = sparse.encode_query(state.query.text)
    request = models.QueryRequest(
        query=to_sparse(vector),
        using=SPARSE,
        filter=to_filter(state.query.filters),
        limit=2,
    )
    ((first, second),) = [_two([hit.score for hit in hits]) for hits in store.query([request])]
    return state.but(sure=is_sure(first, second, options))


def is_sure(first: float, second: float, options: s.StrongSignal) -> bool:
    """On s/(1+s), which is absolute; s over the best score would always be 1."""
    top, next_one = first / (1 + first), second / (1 + second)
    return top >= options.top and top - next_one >= options.gap


def _two(scores: list[float]) -> tuple[float, float]:
    padded = [max(0.0, score) for score in scores[:2]] + [0.0, 0.0]
    return padded[0], padded[1]
