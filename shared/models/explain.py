"""How a score came to be (G6): a list of effects whose sum is the score."""

from __future__ import annotations

from pydantic import Field

from shared.models.base import Model


class Effect(Model):
    """What one stage did to a score: `effect` was added. `detail` says from what (arm, rank, factor, cosine ...)."""

    stage: str
    effect: float
    detail: dict[str, float | str] = Field(default_factory=dict)


class StageTrace(Model):
    """One stage of one search: its time, how many hits it left, and why it did nothing, if so (D8)."""

    stage: str
    ms: float
    hits: int
    skipped: str | None = None
