"""Rewrites of the question by the LLM, unless BM25 alone is sure of its answer. Nothing of the question is logged."""

from __future__ import annotations

from dataclasses import replace

from qdrant_client import models

from shared.cache import Cache
from shared.errors import RamifyError, ReplyError
from shared.language.text import is_cjk_text
from shared.models import Cost
from shared.models.base import Model
from shared.providers.llm.client import spent
from shared.providers.llm.prompts import expand_prompt
from shared.providers.llm.replies import parse_rewrites
from shared.settings import stages as s
from shared.store import SPARSE, to_filter, to_sparse
from workers.search.state import Query, SearchState, Tools

_FEWEST_WORDS, _FEWEST_CJK = 3, 3


def strong_signal(state: SearchState, options: s.StrongSignalStage, tools: Tools) -> SearchState:
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


def is_sure(first: float, second: float, options: s.StrongSignalStage) -> bool:
    """On s/(1+s), which is absolute; s over the best score would always be 1."""
    top, next_one = first / (1 + first), second / (1 + second)
    return top >= options.top and top - next_one >= options.gap


def _two(scores: list[float]) -> tuple[float, float]:
    padded = [max(0.0, score) for score in scores[:2]] + [0.0, 0.0]
    return padded[0], padded[1]


class Rewrites(Model):
    """What the LLM made of a question, and what that cost."""

    texts: tuple[str, ...]
    cost: Cost = Cost()


def expand(state: SearchState, options: s.ExpansionStage, tools: Tools) -> SearchState:
    """Add rewrites to the query; the question itself always stays first."""
    if tools.llm is None:
        return state.skip("llm_unavailable")
    if state.sure:
        return state.skip("strong_signal_detected")
    if _too_short(state.query.text):
        return state.skip("question_too_short")
    try:
        rewrites = _rewrites(state.query, options.rewrites, tools)
    except RamifyError as error:
        cost = state.cost + spent(error).cost
        return state.but(cost=cost).skip(f"The question was not rewritten: {error}", warn=True)
    return state.but(query=replace(state.query, rewrites=rewrites.texts), cost=state.cost + rewrites.cost)


def _too_short(text: str) -> bool:
    return len(text.strip()) < _FEWEST_CJK if is_cjk_text(text) else len(text.split()) < _FEWEST_WORDS


def _rewrites(query: Query, count: int, tools: Tools) -> Rewrites:
    def compute() -> Rewrites:
        assert tools.llm is not None  # noqa: S101 - `expand` asks only then
        reply = tools.llm.complete(expand_prompt(query.text, count), timeout_s=tools.timeout_s)
        try:
            texts = parse_rewrites(reply.text, query.text, count)
        except ReplyError as error:
            error.spent = reply  # type: ignore[attr-defined] # read by spent()
            raise
        return Rewrites(texts=texts, cost=reply.cost)

    cache: Cache | None = tools.cache
    if cache is None:
        return compute()
    parts = {"tenant": query.tenant, "question": query.text, "count": count, "model": tools.settings.llm_model}
    rewrites, result = cache.get_or_compute(
        "rewrite", parts, Rewrites, compute, wait_s=min(tools.settings.cache.wait_s, tools.timeout_s)
    )
    return rewrites.model_copy(update={"cost": Cost()}) if result.reused else rewrites
