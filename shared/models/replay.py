"""A job that goes on from the record of another one: what it takes over, and what it does otherwise."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from shared.models.base import Model
from shared.models.plan import Node
from shared.models.route import Route


class ReplayStage(StrEnum):
    """From which stage on a replay runs itself; what stands before it comes from the record."""

    PLAN = "plan"
    SEARCH = "search"
    RERANK = "rerank"
    MERGE = "merge"
    SUMMARY = "summary"

    @property
    def keeps_leaves(self) -> bool:
        """True where the leaves come from the record."""
        return self in {ReplayStage.MERGE, ReplayStage.SUMMARY}


class PlanningNotes(Model):
    """What was said while a tree was planned and refined: `degraded`: codes of `Degradation` by item of the work."""

    warnings: tuple[str, ...] = ()
    degraded: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Replay(Model):
    """What a replay is of. `of`: the job that it takes over from, empty for a file, which has `nodes` and `planning`.

    `digest`: of the manifest. `settings`: those that are other than the pools', sections nested. `strategies`: the
    strategy that each leaf was searched with, by node id.
    """

    of: str = ""
    digest: str = ""
    start: ReplayStage
    settings: dict[str, Any] = Field(default_factory=dict)
    route: Route | None = None
    nodes: tuple[Node, ...] = ()
    planning: PlanningNotes = PlanningNotes()
    strategies: dict[str, str] = Field(default_factory=dict)
