"""Calls of a model that identical questions share through the cache. Only the job that made a call pays for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from shared.cached_llm import cached_llm
from shared.models import Cost, Hit
from shared.models.base import Model
from shared.providers.fallbacks import fallbacks_so_far
from shared.providers.rerankers.base import Reranked
from workers.search.state import Tools

T = TypeVar("T")


class CachedRanking(Model):
    """A rerank without the chunks, which whoever asks for it has: `order` are places among the hits as they came.

    `parts` are those that the reranker gave or changed. `made`: the rest of the result.
    """

    order: tuple[int, ...]
    scores: tuple[float, ...]
    parts: tuple[dict[str, float], ...]
    made: Reranked


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


def reranked_once(tools: Tools, tenant: str, question: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
    """`hits` by the tools' reranker, which ranks the same hits for the same question of a tenant once.

    What a model scored for another job costs nothing; what was made by a fallback is for its own job alone. A reranker
    without a model is asked each time: that costs less than the cache.
    """
    reranker = tools.reranker
    assert reranker is not None  # noqa: S101 - callers ask only then
    if tools.cache is None or not tools.settings.rerank.traits.asks_model:
        return reranker.rerank(question, hits, timeout_s)
    scored = [[hit.chunk_id, hit.title, hit.heading, hit.text, hit.score] for hit in hits]
    key = {
        "tenant": tenant,
        "question": question,
        "hits": scored,
        "reranker": reranker.name,
        "settings": tools.settings.rerank.model_dump(mode="json", exclude={"api_key"}),
    }
    before = fallbacks_so_far()
    kept, result = tools.cache.get_or_compute(
        "rerank", key, CachedRanking, lambda: _without_chunks(hits, reranker.rerank(question, hits, timeout_s)),
        wait_s=tools.cache_wait_s, keep=lambda _: fallbacks_so_far() == before,
    )  # fmt: skip
    warnings = (*kept.made.warnings, *filter(None, [result.warning]))
    free = {"calls": 0, "documents": 0, "tokens_in": 0, "tokens_out": 0} if result.reused else {}
    return kept.made.model_copy(update={"hits": _with_chunks(hits, kept), "warnings": warnings, **free})


def _without_chunks(hits: Sequence[Hit], ranked: Reranked) -> CachedRanking:
    places = {hit.chunk_id: place for place, hit in enumerate(hits)}
    order = tuple(places[hit.chunk_id] for hit in ranked.hits)
    both = zip(order, ranked.hits, strict=True)
    changed = (set(after.parts.items()) - set(hits[at].parts.items()) for at, after in both)
    return CachedRanking(
        order=order,
        scores=tuple(hit.score for hit in ranked.hits),
        parts=tuple(map(dict, changed)),
        made=ranked.model_copy(update={"hits": ()}),
    )


def _with_chunks(hits: Sequence[Hit], kept: CachedRanking) -> tuple[Hit, ...]:
    return tuple(
        hits[at].but(score=score, parts={**hits[at].parts, **parts})
        for at, score, parts in zip(kept.order, kept.scores, kept.parts, strict=True)
    )
