"""Reuse of what another job has reranked, but never of a fallback: that is shown to its own job and not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from shared.budget import refusals
from shared.cache import Cache, How, Outcome
from shared.errors import RamifyError

if TYPE_CHECKING:
    from workers.search.tools import Tools

M = TypeVar("M", bound=BaseModel)


class _FellBackError(RamifyError):
    """Carries a value out of the cache that must not be kept."""

    def __init__(self, value: Any) -> None:
        super().__init__("the reranker fell back")
        self.value = value


def searched_once(
    cache: Cache, parts: Mapping[str, object], compute: Callable[[], M], *, model: type[M], wait_s: float
) -> tuple[M, Outcome]:
    """The search half of a leaf, once for all who ask with the same `parts`; not kept where a budget refused a call."""
    before = refusals()

    def kept() -> M:
        value = compute()
        if refusals() != before:
            raise _FellBackError(value)
        return value

    try:
        return cache.get_or_compute("leaf", parts, model, kept, wait_s=wait_s)
    except _FellBackError as fallback:
        value: M = fallback.value
        return value, Outcome(how=How.COMPUTED)


def reranked_once(
    tools: Tools,
    parts: Mapping[str, object],
    compute: Callable[[], M],
    *,
    model: type[M],
    fell_back: Callable[[M], bool],
) -> tuple[M, Outcome]:
    """What `compute` gives, once for all who ask with the same `parts` and reranker; a fallback is given, not kept."""
    if tools.cache is None:
        return compute(), Outcome(how=How.BYPASSED)

    def kept() -> M:
        value = compute()
        if fell_back(value):
            raise _FellBackError(value)
        return value

    key = {
        **parts,
        "reranker": tools.reranker.name if tools.reranker else "none",
        "settings": tools.settings.rerank.model_dump(mode="json", exclude={"api_key"}),
    }
    wait = min(tools.settings.cache.wait_s, tools.timeout_s)
    try:
        return tools.cache.get_or_compute("rerank", key, model, kept, wait_s=wait)
    except _FellBackError as fallback:
        value: M = fallback.value
        return value, Outcome(how=How.COMPUTED)
