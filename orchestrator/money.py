"""Checks budgets at the door: their values, and that money has prices (G7). Spends and counts nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from shared.budget import Kind, no_price, price
from shared.errors import InputError
from shared.models.budget import Budget
from shared.settings import Settings
from shared.settings.faults import request_fault


def as_budget(given: Budget | Mapping[str, Any]) -> Budget:
    """A checked budget. Raises: InputError naming the limit."""
    if isinstance(given, Budget):
        return given
    try:
        return Budget.model_validate(given)
    except ValidationError as error:
        raise request_fault(error, "batch budget ") from None


def paid_models(settings: Settings) -> Iterator[tuple[Kind, str]]:
    """What a job may call on servers, by kind and model. Models that run in the workers cost nothing."""
    if settings.has_llm:
        yield "llm", settings.llm_model
        if settings.rerank.provider == "chat" and settings.rerank.model:
            yield "llm", settings.rerank.model
    if settings.embedding.provider == "endpoint":
        yield "embedding", settings.embedding.model
    if settings.rerank.provider == "endpoint":
        yield "rerank", settings.rerank.model


def check_prices(budget: Budget, settings: Settings) -> None:
    """Raises: InputError when money is limited and a model that may be called has no price."""
    if budget.max_cost is None:
        return
    for kind, model in paid_models(settings):
        if price(settings.prices, kind, model, (1, 1, 1)) is None:
            raise InputError("max_cost", budget.max_cost, no_price(kind, model))
