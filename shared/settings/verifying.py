"""What completes and checks an answer: one more round of searches, unsupported sentences, and the verifier."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.models.request import JobRequest
from shared.settings.sections import ModelSettings, ProviderTraits, RerankSettings, SettingsSection
from shared.settings.server_url import ServerUrl


class GapSettings(SettingsSection):
    """One more round of searches for what the first one left open."""

    #: Hits that a reader sees first.
    first: ClassVar[int] = 10
    enabled: bool = Field(default=True, description="search once more for what was not found")
    max_leaves: int = Field(default=4, ge=1, le=12, description="leaves that the round adds at most")
    ask: bool = Field(default=False, description="with an LLM: also ask it, once a job, what is missing")
    min_gain: float = Field(default=0.05, ge=0, le=1, description="expected gain under which a leaf is not added")
    min_chain: float = Field(
        default=0.3, ge=0, le=2, description="score over names from which a passage of the first ten is a second page"
    )
    lookups_below: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of its words in the best passage under which a lookup is searched again, too; 0: none is",
    )

    min_seconds: float = Field(default=3.0, ge=0, description="seconds that must be left for the leaves")

    def allow(self, request: JobRequest) -> bool:
        """False for what is searched exactly as the caller says (a plan or queries of its own, one leaf, a symbol).

        So it is where fewer than the `first` hits are wanted, among which a round has its places.
        """
        own = request.subqueries or request.typed or request.near_symbol or request.depth
        return self.enabled and request.decompose and not own and (request.top_n or self.first) >= self.first


class SummarySettings(SettingsSection):
    """What becomes of a summary by an LLM."""

    unsupported: Literal["remove", "mark"] = Field(
        default="remove", description="sentences that their sources do not say: remove, or mark (they stay, marked)"
    )


class VerifierSettings(ModelSettings):
    """Whoever is asked about the sentences of a summary that the lexical checks leave undecided."""

    providers: ClassVar = {
        "none": ProviderTraits(),
        "endpoint": ProviderTraits(needs_model=True, server=True),
        "nli": ProviderTraits(needs_model=True, server=True),
        "fastembed": ProviderTraits(needs_model=True),
        "chat": ProviderTraits(llm=True),
    }
    provider: Literal["none", "endpoint", "nli", "fastembed", "chat"] = Field(
        default="none",
        description="none, endpoint (/rerank: claim and passages), nli (/predict: premise and hypothesis), fastembed "
        "(cross-encoder), chat (the LLM of the summary)",
    )
    base_url: ServerUrl | None = Field(default=None, description="endpoint, nli: base of /rerank or /predict")
    least: float = Field(default=0.5, ge=0, le=1, description="score from which on a passage says a sentence")
    most: int = Field(default=12, ge=1, le=100, description="sentences of one summary that are asked about")
    timeout_s: float = Field(default=20.0, gt=0, description="seconds for all sentences of one summary")

    def as_reranker(self) -> RerankSettings:
        """The same model as one that ranks."""
        provider: Literal["endpoint", "fastembed"] = "fastembed" if self.provider == "fastembed" else "endpoint"
        given = {name: getattr(self, name) for name in ("model", "path", "base_url", "api_key", "api_key_for")}
        return RerankSettings(provider=provider, timeout_s=self.timeout_s, batch_ms=0, attempts=1, **given)
