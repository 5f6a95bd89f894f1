"""What a job spends."""

from __future__ import annotations

from pydantic import Field

from shared.models.base import Model


class Cost(Model):
    """Calls and tokens. Tokens are the provider's own count, 0 where it reports none."""

    llm_calls: int = Field(default=0, ge=0)
    llm_tokens_in: int = Field(default=0, ge=0)
    llm_tokens_out: int = Field(default=0, ge=0)
    embed_calls: int = Field(default=0, ge=0)
    embed_tokens: int = Field(default=0, ge=0)
    rerank_calls: int = Field(default=0, ge=0)
    rerank_documents: int = Field(default=0, ge=0)

    def __add__(self, other: Cost) -> Cost:
        return Cost(**{name: getattr(self, name) + getattr(other, name) for name in Cost.model_fields})

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in Cost.model_fields)
