"""The LLM with identical calls made once, for all jobs of a tenant. Only the job that made a call pays for it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from shared.cache import Cache
from shared.providers.llm.client import LLM, Check, LLMReply
from shared.providers.time_shares import seconds_for
from shared.settings import Settings

_FREE = {"tokens_in": 0, "tokens_out": 0, "calls": 0}


@dataclass(frozen=True)
class CachedLLM:
    """`LLM` over another one. `kind` is what is asked for, as the cache counts it: decomposition, summary.

    Errors, and replies that `check` does not take, are nobody else's: those who waited ask themselves.
    """

    llm: LLM
    cache: Cache
    settings: Settings
    tenant: str
    kind: str

    def complete(
        self, prompt: str, *, timeout_s: float, max_tokens: int | None = None, check: Check | None = None
    ) -> LLMReply:
        """The reply of the same tenant's identical call, at no cost, or else of this one. Raises: as the other LLM's.

        Without `check` it cannot know whether the reply is of use to anybody: then the call is made.
        """
        if check is None:
            return self.llm.complete(prompt, timeout_s=timeout_s, max_tokens=max_tokens)
        deadline = time.monotonic() + timeout_s

        def compute() -> LLMReply:
            left = deadline - time.monotonic()
            return self.llm.complete(prompt, timeout_s=left, max_tokens=max_tokens, check=check)

        parts = {
            "tenant": self.tenant,
            "server": str(self.settings.llm_base_url),
            "model": self.settings.llm_model,
            "max_tokens": max_tokens or self.settings.llm_max_tokens,
            "prompt": prompt,
        }
        wait_s = min(self.settings.cache.wait_s, seconds_for("another's call", timeout_s))
        reply, result = self.cache.get_or_compute(self.kind, parts, LLMReply, compute, wait_s=wait_s)
        return reply.model_copy(update=_FREE) if result.reused else reply


def cached_llm(llm: LLM | None, cache: Cache | None, settings: Settings, tenant: str, kind: str) -> LLM | None:
    """`llm` with its identical calls made once, where there are both an LLM and a cache."""
    return CachedLLM(llm, cache, settings, tenant, kind) if llm is not None and cache is not None else llm
