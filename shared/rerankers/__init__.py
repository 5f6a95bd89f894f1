"""Rerankers: a query and its hits in, the same hits better sorted out. One file each, one registry."""

from __future__ import annotations

from collections.abc import Callable

from shared.rerankers.base import Reranked, Reranker
from shared.rerankers.endpoint import EndpointReranker
from shared.rerankers.fastembed_cross import CrossEncoderReranker
from shared.rerankers.guarded import Guarded
from shared.rerankers.lexical import LexicalReranker
from shared.rerankers.none import NoReranker
from shared.settings import Settings
from shared.settings.sections import Rerank

__all__ = ["Guarded", "Reranked", "Reranker", "reranker"]

_REGISTRY: dict[str, Callable[[Rerank], Reranker]] = {
    "lexical": lambda _: LexicalReranker(),
    "endpoint": EndpointReranker,
    "fastembed": CrossEncoderReranker,
    "none": lambda _: NoReranker(),
}


def reranker(settings: Settings) -> Guarded:
    """The reranker that `settings.rerank` names. It never raises: a failure leaves the fused order and a warning.

    Close it at the end: an endpoint holds connections.
    """
    return Guarded(_REGISTRY[settings.rerank.provider](settings.rerank))
