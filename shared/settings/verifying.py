"""What holds an answer to its sources beside the words: what becomes of unsupported sentences, and the verifier."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.settings.sections import ModelSettings, ProviderTraits, RerankSettings, SettingsSection
from shared.settings.server_url import ServerUrl


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
