"""The page of operators: lanes, pools, model servers, the reaper, dead letters. Of all tenants."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from orchestrator.local.state import read_state
from orchestrator.metrics.snapshot import Snapshot, SnapshotReader
from orchestrator.server.page.visitor import Operator, PageRoute
from shared.contract import Queue
from shared.errors import NotRunningError
from shared.models import Lane
from shared.settings import Settings

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_DEAD = 50


@dataclass(frozen=True)
class LaneView:
    """One lane: jobs that wait, of as many as may, and those under way, of as many as may be."""

    name: str
    waiting: int
    most: int
    under_way: int
    window: int


@dataclass(frozen=True)
class StackView:
    """What the page shows of a snapshot. `reaper_s`: seconds since it looked, None: never."""

    snapshot: Snapshot
    lanes: list[LaneView]
    reaper_s: float | None

    @property
    def unserved(self) -> list[str]:
        """Queues without a worker."""
        served = {name for beat in self.snapshot.workers for name in beat.queues}
        return [queue.value for queue in Queue if queue.value not in served]


def stack_view(snapshot: Snapshot, settings: Settings, now: float) -> StackView:
    """A snapshot beside the limits of the settings. Pure."""
    limits = settings.lanes
    most = {Lane.INTERACTIVE: limits.max_waiting_interactive, Lane.BATCH: limits.max_waiting_batch}
    lanes = [
        LaneView(
            lane.value, state.all_waiting, most[lane], sum(state.under_way.values()), limits.under_way
        )
        for lane, state in snapshot.lanes.items()
    ]  # fmt: skip
    seen = None if snapshot.reaper_at is None else max(0.0, now - snapshot.reaper_at)
    return StackView(snapshot, lanes, seen)


@router.get("/operate")
def operate(visitor: Operator) -> Response:
    """Everything an operator looks at first. Raises: NotRunningError."""
    reader: SnapshotReader = visitor.request.app.state.metrics.snapshots
    snapshot = reader.read()
    if not snapshot.up:
        raise NotRunningError("Redis does not answer: `ramify doctor` says what is wrong")
    settings, dead = visitor.client.settings, visitor.client.dead
    state: Any = read_state(settings)
    return visitor.page(
        "operate.html",
        view=stack_view(snapshot, settings, reader.now()),
        flower=state.flower_url if state else "",
        dead=list(dead.list(_DEAD)),
        dead_count=dead.count(),
    )


@router.post("/operate/dead/{dead_letter_id}/replay")
def replay(visitor: Operator, dead_letter_id: str) -> Response:
    """Try a dead letter's work again."""
    done = visitor.client.dead.replay(dead_letter_id)
    return RedirectResponse(f"/jobs/{done.job_id}" if done.job_id else "/operate", HTTPStatus.SEE_OTHER)


@router.post("/operate/dead/{dead_letter_id}/drop")
def drop(visitor: Operator, dead_letter_id: str) -> Response:
    """Forget a dead letter."""
    visitor.client.dead.drop(dead_letter_id)
    return RedirectResponse("/operate", HTTPStatus.SEE_OTHER)
