"""What a job spends."""

from __future__ import annotations

from pydantic import Field, field_validator

from shared.models.base import Model


class Cost(Model):
    """Calls, or runs of a local model, and tokens by the provider's own count, 0 where it reports none."""

    llm_calls: int = Field(default=0, ge=0)
    llm_tokens_in: int = Field(default=0, ge=0)
    llm_tokens_out: int = Field(default=0, ge=0)
    embed_calls: int = Field(default=0, ge=0)
    embed_tokens: int = Field(default=0, ge=0)
    rerank_calls: int = Field(default=0, ge=0)
    rerank_documents: int = Field(default=0, ge=0)

    def __add__(self, other: Cost) -> Cost:
        return Cost(**{name: getattr(self, name) + getattr(other, name) for name in Cost.model_fields})

    def __sub__(self, other: Cost) -> Cost:
        """What of this is not in `other`; nothing is less than 0."""
        return Cost(**{name: max(0, getattr(self, name) - getattr(other, name)) for name in Cost.model_fields})

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in Cost.model_fields)


class Budget(Model):
    """Limits; None: none. Each is hard: the call that would go beyond it is not made.

    `max_calls` counts calls to the LLM, every try of them; 0: no LLM at all. `max_tokens` counts tokens of the LLM, in
    and out, and of the embedding server. `max_seconds` runs from a job's turn: it ends with what it has by then; a
    batch's runs from its opening: then it spends nothing any more. `max_cost` is money of LLM, embedding and rerank, in
    the unit of `prices`.
    """

    max_calls: int | None = Field(default=None, ge=0, le=1_000_000_000)
    max_tokens: int | None = Field(default=None, ge=0, le=1_000_000_000_000)
    max_seconds: float | None = Field(
        default=None, le=86_400, allow_inf_nan=False, json_schema_extra={"exclusiveMinimum": 0}
    )
    max_cost: float | None = Field(default=None, ge=0, le=1_000_000, allow_inf_nan=False)

    @field_validator("max_seconds")
    @classmethod
    def _some_time(cls, value: float | None) -> float | None:
        if value is not None and value <= 0:
            raise ValueError("leaves no time to answer: give more than 0 seconds (max_calls = 0 means: no LLM)")
        return value

    def limits(self) -> dict[str, float]:
        """The limits that are set, by name."""
        given = vars(self)
        return {name: given[name] for name in _LIMITS if given[name] is not None}

    def otherwise(self, other: Budget) -> Budget:
        """These limits, and those of `other` where there is none."""
        return Budget.model_validate({**other.limits(), **self.limits()})


_LIMITS = tuple(Budget.model_fields)


class Spending(Budget):
    """A budget and what is spent of it; what is reserved for calls under way counts."""

    calls: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    seconds: float = Field(default=0, ge=0)
    cost: float = Field(default=0, ge=0)
