"""How a question is read before it is searched, and what follows for each type: a table (docs/routing.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from pydantic import Field, field_validator, model_validator

from shared.models.route import PlannerName
from shared.plugins import AGGREGATORS, plugins
from shared.settings.sections import AggregatorSettings, SettingsSection, known
from shared.settings.strategies import AnyStage, aggregator_names

#: What a table may name; `request` is the caller's own plan and in no table.
PLANNERS = tuple(name.value for name in PlannerName if name is not PlannerName.REQUEST)


class RoutingRow(SettingsSection):
    """How questions of one type are answered."""

    planner: str = Field(description="none, original, decompose, nested or enumeration")
    strategy: str = Field(default="", description="a strategy; empty: search.strategy")
    post: tuple[AnyStage, ...] | None = Field(
        default=None, description="stages behind the rerank, instead of the strategy's own"
    )
    aggregator: str = Field(description="simple, reasoning, enumeration, or a plugin's")

    @field_validator("planner")
    @classmethod
    def _known_planner(cls, value: str) -> str:
        return known(value, PLANNERS, "planner")

    @field_validator("aggregator")
    @classmethod
    def _known_aggregator(cls, value: str) -> str:
        if value in AggregatorSettings.model_fields:
            return value
        try:
            return known(value, aggregator_names(), "aggregator")
        except ValueError as error:
            raise ValueError(f"{error}{plugins().left_out(AGGREGATORS, value)}") from None

    @field_validator("post", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        """`post = ["mmr"]` is short for a table that says no more."""
        if not isinstance(value, list | tuple):
            return value
        return [{"stage": item} if isinstance(item, str) else item for item in value]


class RoutingTypes(SettingsSection):
    """The table. A row of the settings file changes single keys of the one that Ramify brings."""

    none: RoutingRow
    simple_rule: RoutingRow
    aspects: RoutingRow
    multi_hop: RoutingRow
    enumeration: RoutingRow
    unsure: RoutingRow

    @model_validator(mode="before")
    @classmethod
    def _with_built_in(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        rows = {}
        for name, row in built_in_rows().items():
            given = values.get(name, {})
            rows[name] = {**row, **given} if isinstance(given, Mapping) else given
        return {**values, **rows}

    def row(self, name: str) -> RoutingRow:
        """The row of that name, one of the fields."""
        row: RoutingRow = getattr(self, name)
        return row


class RoutingSettings(SettingsSection):
    """The router. Rules read every question; the LLM is asked only about those they are unsure of."""

    adaptive: bool = Field(default=True, description="false: every question is answered as the row unsure says")
    unsure_below: float = Field(default=0.5, ge=0, le=1, description="confidence from which the rules count as sure")
    llm: bool = Field(default=True, description="ask the LLM, if there is one, where the rules are unsure")
    types: RoutingTypes = Field(default_factory=lambda: RoutingTypes.model_validate({}))


@cache
def built_in_rows() -> dict[str, dict[str, Any]]:
    """The rows of routing.toml, as written."""
    return tomllib.loads(resources.files("shared.settings").joinpath("routing.toml").read_text(encoding="utf-8"))
