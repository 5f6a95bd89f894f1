"""Calls of a model that identical questions share through the cache. Only the job that made a call pays for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shared.cache import CacheResult, CacheStatus
from shared.errors import ReplyError
from shared.models import Cost, SearchResult
from shared.models.base import Model
from shared.providers.fallbacks import fallbacks_so_far
from shared.providers.rerankers.base import Reranked
from workers.search.state import Tools


class LLMValue(Model):
    """What was read off one reply of the LLM, and what the reply cost. A subclass says what type `value` has."""

    value: Any
    cost: Cost = Cost()


V = TypeVar("V", bound=LLMValue)
R = TypeVar("R", SearchResult, Reranked)


def completed_once(  # noqa: PLR0913 - the call, how its reply is read, and under which key it is shared
    model: type[V],
    parts: Mapping[str, object],
    prompt: str,
    read: Callable[[str], object],
    tools: Tools,
    *,
    kind: str,
    max_tokens: int | None = None,
) -> V:
    """What `read` makes of the LLM's reply to `prompt`; identical `parts` of one `kind` are asked once.

    Raises: TransientError, PermanentError, or ReplyError for a reply that cannot be used; each tells its cost
    (`shared.providers.llm.client.spent`).
    """

    def compute() -> V:
        assert tools.llm is not None  # noqa: S101 - callers ask only then
        reply = tools.llm.complete(prompt, timeout_s=tools.timeout_s, max_tokens=max_tokens)
        try:
            return model(value=read(reply.text), cost=reply.cost)
        except ReplyError as error:
            error.spent = reply  # type: ignore[attr-defined] # read by spent()
            raise

    if tools.cache is None:
        return compute()
    key = {**parts, "model": tools.settings.llm_model, "server": str(tools.settings.llm_base_url)}
    found, result = tools.cache.get_or_compute(kind, key, model, compute, wait_s=tools.cache_wait_s)
    return found.model_copy(update={"cost": Cost()}) if result.reused else found


def reranked_once(
    tools: Tools, parts: Mapping[str, object], model: type[R], compute: Callable[[], R]
) -> tuple[R, CacheResult]:
    """What `compute` gives, once for all who ask with the same `parts` and reranker.

    One that was made by a fallback is for its own job alone: it is not stored for others.
    """
    if tools.cache is None:
        return compute(), CacheResult(status=CacheStatus.BYPASSED)
    key = {
        **parts,
        "reranker": tools.reranker.name if tools.reranker else "none",
        "settings": tools.settings.rerank.model_dump(mode="json", exclude={"api_key"}),
    }
    before = fallbacks_so_far()
    return tools.cache.get_or_compute(
        "rerank", key, model, compute, wait_s=tools.cache_wait_s, keep=lambda _: fallbacks_so_far() == before
    )
