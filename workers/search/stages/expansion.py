"""Rewrites of the question by the LLM, unless BM25 alone is sure of its answer. Nothing of the question is logged."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from qdrant_client import models

from shared.errors import RamifyError
from shared.language.text import is_cjk_text
from shared.providers.fallbacks import fell_back
from shared.providers.llm.client import spent
from shared.providers.llm.prompts import expand_prompt
from shared.providers.llm.replies import parse_rewrites
from shared.providers.time_shares import share_of
from shared.settings import stages as s
from shared.store import SPARSE, to_filter, to_sparse
from workers.search.cached import completed_once
from workers.search.state import SearchState, Tools

_MIN_WORDS, _MIN_CJK_CHARS = 3, 3


def strong_signal(state: SearchState, options: s.StrongSignalStage, tools: Tools) -> SearchState:
    """Whether the best BM25 hit of the question scores high and far ahead of the second."""
    store, sparse = tools.need_store()
    vector = to_sparse(sparse.encode_query(state.query.text))
    request = models.QueryRequest(query=vector, using=SPARSE, filter=to_filter(state.query.filters), limit=2)
    (hits,) = store.query([request])
    first, second, *_ = [*(max(0.0, hit.score) for hit in hits), 0.0, 0.0]
    return state.but(strong_signal=is_strong_signal(first, second, options))


def is_strong_signal(first: float, second: float, options: s.StrongSignalStage) -> bool:
    """Compares s/(1+s): divided by the best score, the first would always be 1."""
    top, next_one = first / (1 + first), second / (1 + second)
    return top >= options.top and top - next_one >= options.gap


def expand(state: SearchState, options: s.ExpansionStage, tools: Tools) -> SearchState:
    """Add rewrites to the query; the question itself always stays first."""
    if tools.llm is None:
        return state.skip("llm_unavailable")
    if state.strong_signal:
        return state.skip("strong_signal_detected")
    text, count = state.query.text, options.rewrites
    if len(text.strip()) < _MIN_CJK_CHARS if is_cjk_text(text) else len(text.split()) < _MIN_WORDS:
        return state.skip("question_too_short")
    read = partial(parse_rewrites, question=text, most=count)
    try:
        with share_of("rewriting", tools.left_s):
            rewrites, cost = completed_once(expand_prompt(text, count), read, tools, state.query.tenant, kind="rewrite")
    except RamifyError as error:
        fell_back("llm", error)
        cost = state.cost + spent(error).cost
        return state.but(cost=cost).skip(f"The question was not rewritten: {error}", warn=True)
    return state.but(query=replace(state.query, rewrites=rewrites), cost=state.cost + cost)
