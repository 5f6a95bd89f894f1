"""How a score came to be: a list of effects whose sum is the score."""

from __future__ import annotations

from pydantic import Field

from shared.models.base import Model


class Effect(Model):
    """What one stage did to a score: `effect` was added. `detail` says from what (arm, rank, factor, cosine ...)."""

    stage: str
    effect: float
    detail: dict[str, float | str] = Field(default_factory=dict)


class Opened(Model):
    """A directory that a hierarchical search opened: in which round, at which score, and how many hits it gave.

    `own` is how well the directory itself fits the question, `parent` the score of the one that led to it.
    """

    round: int = Field(ge=1)
    path: str
    score: float
    own: float
    parent: float | None = None
    hits: int = 0


class StageTrace(Model):
    """One stage of one search: its time, how many hits it left, and why it did nothing, if so.

    `trail` are the directories that it opened, in order, and `stopped` says why it opened no more. `note` is
    what else it has to say, such as the ambiguous names that it did not follow.
    """

    stage: str
    ms: float
    hits: int
    skipped: str | None = None
    trail: tuple[Opened, ...] = ()
    stopped: str | None = None
    note: str | None = None
