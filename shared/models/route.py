"""What a question asks for and how it is to be answered. Values only: shared/language/routing.py reads questions."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from shared.models.base import Model


class QueryType(StrEnum):
    """The way a question is answered: one lookup, a tree or several hops, a complete list, or no search at all."""

    SIMPLE_RULE = "simple_rule"
    COMPLEX_REASONING = "complex_reasoning"
    ENUMERATION = "enumeration"
    NONE = "none"


Detail = Literal["low", "default", "high"]


class Intent(StrEnum):
    """What the question is after."""

    ENTITY = "entity"
    TEMPORAL = "temporal"
    EVENT = "event"
    GENERAL = "general"

    @property
    def detail(self) -> Detail:
        """How much of a page is wanted: its compiled truth (low), its timeline too (high), or either."""
        if self is Intent.GENERAL:
            return "default"
        return "low" if self is Intent.ENTITY else "high"


class Hops(StrEnum):
    """What a complex question needs: several aspects side by side, or facts that only other facts lead to."""

    ASPECTS = "aspects"
    MULTI_HOP = "multi_hop"


#: What a rule may say of a question, and the type that this speaks for; a complex question is told by its hops. The
#: cheaper type stands first.
TYPE_OF: dict[str, QueryType] = {
    says.value: kind for kind in QueryType for says in (Hops if kind is QueryType.COMPLEX_REASONING else (kind,))
}


class PlannerName(StrEnum):
    """How a question becomes leaves. `request` is the caller's own plan; a table of the settings names the others.

    none: no leaf at all. original: the question alone. decompose: the LLM, else the rules. nested: the steps that the
    rules see in it, which wait for each other, else as decompose. enumeration: shards of everything that fits.
    """

    NONE = "none"
    ORIGINAL = "original"
    DECOMPOSE = "decompose"
    NESTED = "nested"
    ENUMERATION = "enumeration"
    REQUEST = "request"


class Reason(Model):
    """One rule that fired: its name, what it speaks for, the words it saw, and its weight (0..1)."""

    rule: str
    says: str
    words: str = ""
    weight: float = Field(ge=0, le=1)


class Routed(Model):
    """How one question is read. `hops` is set for complex questions and for no others.

    `confidence` (0..1) is about `type`. `unsure`: it lies below the threshold; `type` is then only the best guess.
    `by` says who decided; `warnings` what went wrong.
    """

    type: QueryType
    intent: Intent
    hops: Hops | None = None
    confidence: float = Field(ge=0, le=1)
    unsure: bool = False
    reasons: tuple[Reason, ...] = ()
    by: Literal["rules", "llm", "request", "corpus"] = "rules"
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Routed:
        if (self.hops is not None) != (self.type is QueryType.COMPLEX_REASONING):
            raise ValueError(f"hops {self.hops} does not go with type {self.type.value}")
        return self


class Route(Routed):
    """How one job is answered: how its question is read, and what follows from that.

    `row` names the row of `routing.types` that applies, `strategy` the one that leaves are searched with (one of the
    settings, or NAME/ROW: with that row's own `post`), `aggregator` what builds the answer.
    """

    row: str
    planner: PlannerName
    strategy: str
    aggregator: str
