"""What a question asks for and how it is to be answered (F3, E1). Values only: shared/routing has the rules."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from shared.models.base import Model


class QueryType(StrEnum):
    """The way a question is answered (E1): one lookup, a tree or several hops, a complete list, or no search at all."""

    SIMPLE_RULE = "simple_rule"
    COMPLEX_REASONING = "complex_reasoning"
    ENUMERATION = "enumeration"
    NONE = "none"


class Intent(StrEnum):
    """What the question is after (F3)."""

    ENTITY = "entity"
    TEMPORAL = "temporal"
    EVENT = "event"
    GENERAL = "general"


class Detail(StrEnum):
    """How much of a page counts: the compiled truth alone (low), the timeline too (high), or as the strategy says."""

    LOW = "low"
    HIGH = "high"
    DEFAULT = "default"


class Hops(StrEnum):
    """What a complex question needs: several aspects side by side, or facts that only other facts lead to."""

    ASPECTS = "aspects"
    MULTI_HOP = "multi_hop"


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


#: The detail of each intent (F3).
DETAIL_OF = {
    Intent.ENTITY: Detail.LOW,
    Intent.TEMPORAL: Detail.HIGH,
    Intent.EVENT: Detail.HIGH,
    Intent.GENERAL: Detail.DEFAULT,
}


class Reason(Model):
    """One rule that fired: its name, what it speaks for, the words it saw, and its weight (0..1)."""

    rule: str
    says: str
    words: str = ""
    weight: float = Field(ge=0, le=1)


class Routed(Model):
    """How one question is read. `hops` is set for complex questions and for no others.

    `confidence` (0..1) is about `type`. `unsure`: it lies below the threshold; `type` is then only the best guess, and
    a caller does well to answer as if nothing had been read. `by` says who decided; `warnings` what went wrong.
    """

    type: QueryType
    intent: Intent
    detail: Detail
    hops: Hops | None = None
    confidence: float = Field(ge=0, le=1)
    unsure: bool = False
    reasons: tuple[Reason, ...] = ()
    by: Literal["rules", "llm", "request"] = "rules"
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Routed:
        if (self.hops is not None) != (self.type is QueryType.COMPLEX_REASONING):
            raise ValueError(f"hops {self.hops} does not go with type {self.type.value}")
        return self


class Route(Routed):
    """How one job is answered: how its question is read, and what follows from that (E2).

    `row` names the row of `routing.types` that applies, `strategy` the one that leaves are searched with (one of the
    settings, or NAME/ROW: with that row's own `post`), `aggregator` what builds the answer.
    """

    row: str
    planner: PlannerName
    strategy: str
    aggregator: str
