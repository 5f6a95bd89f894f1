"""Calls of a model that identical questions share through the cache. Only the job that made a call pays for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from shared.cache import CacheResult, CacheStatus
from shared.cached_llm import cached_llm
from shared.models import Cost, SearchResult
from shared.providers.fallbacks import fallbacks_so_far
from shared.providers.rerankers.base import Reranked
from workers.search.state import Tools

T = TypeVar("T")
R = TypeVar("R", SearchResult, Reranked)


def completed_once(  # noqa: PLR0913 - the call, how its reply is read, and for whom
    prompt: str, read: Callable[[str], T], tools: Tools, tenant: str, *, kind: str, max_tokens: int | None = None
) -> tuple[T, Cost]:
    """What `read` makes of the LLM's reply to `prompt`, and its cost; identical prompts of a tenant are sent once.

    Raises: TransientError, PermanentError, or ReplyError for a reply that cannot be used; each tells its cost
    (`shared.providers.llm.client.spent`).
    """
    llm = cached_llm(tools.llm, tools.cache, tools.settings, tenant, kind)
    assert llm is not None  # noqa: S101 - callers ask only then
    reply = llm.complete(prompt, timeout_s=tools.left_s, max_tokens=max_tokens, check=read)
    return read(reply.text), reply.cost


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
