"""How the servers that Ramify calls are spared: rate limits, pauses and the circuit breaker."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.settings.section import Section

#: The kinds of servers that are called; a provider is one of these at one host.
ProviderKind = Literal["llm", "embedding", "rerank", "qdrant"]


class RateLimit(Section):
    """The limit of one kind, for each host of it, held by all workers together."""

    requests_per_minute: float = Field(
        default=0, ge=0, le=1_000_000, allow_inf_nan=False, description="of all workers together; 0 = no limit"
    )
    burst: int = Field(default=10, ge=1, le=100_000, description="requests that may go at once after a quiet time")


class Breaker(Section):
    """When a server that fails is left alone, and for how long."""

    failures: int = Field(default=5, ge=0, le=1000, description="failures in a row that open it; 0 = never")
    open_s: float = Field(default=5.0, gt=0, le=3600, description="seconds that it stays open; doubled each time")
    longest_open_s: float = Field(default=60.0, gt=0, le=3600, description="the most that it stays open")
    slow_s: float = Field(
        default=15.0, gt=0, le=3600, description="a call cut off by its job's time is a failure if it had this long"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Breaker:
        if self.longest_open_s < self.open_s:
            raise ValueError("longest_open_s must not be below open_s: raise it, or lower open_s")
        return self


class Providers(Section):
    """All of it, for the LLM, embedding and rerank servers and Qdrant."""

    llm: RateLimit = RateLimit()
    embedding: RateLimit = RateLimit()
    rerank: RateLimit = RateLimit()
    qdrant: RateLimit = RateLimit()
    breaker: Breaker = Breaker()
    pause_s: float = Field(
        default=0.5, gt=0, le=60, description="pause of all workers after a 429 without Retry-After; doubled each time"
    )
    longest_pause_s: float = Field(default=120.0, gt=0, le=3600, description="the most that Retry-After is obeyed for")
    qdrant_attempts: int = Field(default=3, ge=1, le=10, description="tries of one call of Qdrant on transient errors")
    qdrant_patience_s: float = Field(
        default=60.0, ge=0, le=3600,
        description="a search tries on this long while Qdrant is down, a seventh of its leaf's time at most",
    )  # fmt: skip

    def limit(self, kind: ProviderKind) -> RateLimit:
        """The rate limit of a kind."""
        return {"llm": self.llm, "embedding": self.embedding, "rerank": self.rerank, "qdrant": self.qdrant}[kind]
