"""What calls cost, and what a job or a batch may spend where it does not say so itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from shared.settings.section import Section

_Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Prices(Section):
    """Money by model name. A budget of money needs the price of every model that is called; a free one costs 0."""

    currency: str = Field(default="USD", max_length=10, description="what money is called")
    llm_input: dict[str, _Price] = Field(
        default_factory=dict, description='LLM: money per 1M tokens read, "gpt-4o-mini" = 0.15'
    )
    llm_output: dict[str, _Price] = Field(default_factory=dict, description="LLM: money per 1M tokens written")
    embedding: dict[str, _Price] = Field(default_factory=dict, description="embedding server: money per 1M tokens")
    rerank: dict[str, _Price] = Field(default_factory=dict, description="rerank server: money per 1,000 calls")

    @model_validator(mode="after")
    def _both(self) -> Prices:
        for name in {*self.llm_input} ^ {*self.llm_output}:
            lacking = "llm_output" if name in self.llm_input else "llm_input"
            raise ValueError(f"the model {name!r} has no price in {lacking}: give both (0 if it is free)")
        return self


class BudgetDefaults(Section):
    """The budget of a job that names none, limit by limit. Without a value: no limit."""

    max_calls: int | None = Field(default=None, ge=0, description="LLM calls of a job; 0 = no LLM at all")
    max_tokens: int | None = Field(default=None, ge=0, description="tokens of LLM and embedding of a job")
    max_seconds: float | None = Field(default=None, gt=0, le=86_400, description="seconds of a job, from submission")
    max_cost: float | None = Field(default=None, ge=0, description="money of a job; needs prices")
