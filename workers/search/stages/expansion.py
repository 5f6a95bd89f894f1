"""Rewrites of the question by the LLM. Each skip has its reason; nothing of the question is logged."""

from __future__ import annotations

from dataclasses import replace

from shared.cache import Cache
from shared.errors import RamifyError, ReplyError
from shared.llm.client import spent
from shared.llm.prompts import expand_prompt
from shared.llm.replies import parse_rewrites
from shared.models import Cost
from shared.models.base import Model
from shared.settings import stages as s
from shared.text import is_cjk_text
from workers.search.state import Query, State
from workers.search.tools import Tools

_FEWEST_WORDS, _FEWEST_CJK = 3, 3


class Rewrites(Model):
    """What the LLM made of a question, and what that cost."""

    texts: tuple[str, ...]
    cost: Cost = Cost()


def expand(state: State, options: s.Expansion, tools: Tools) -> State:
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
