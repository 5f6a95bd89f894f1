"""Whether this process lives, and whether it can do anything: for load balancers and supervisors, without a key."""

from __future__ import annotations

from typing import Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Request

from orchestrator.client import Ramify
from orchestrator.server.problems import MEDIA_TYPE
from shared.models.base import Model

#: Threads that look at Redis: while that hangs, other requests hold all of theirs.
THREADS = 4
router = APIRouter(tags=["health"])
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
_UNREADY: dict[int | str, dict[str, Any]] = {503: {"description": "Redis does not answer.", "content": _PROBLEM}}


class Health(Model):
    """It answers."""

    status: Literal["ok"] = "ok"


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", operation_id="healthz", summary="Whether this process answers.")
async def healthz() -> Health:
    """Whether this process answers."""
    return Health()


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz", operation_id="readyz", summary="Whether Redis answers, so that jobs can be taken.", responses=_UNREADY
)
async def readyz(request: Request) -> Health:
    """Whether Redis answers, so that jobs can be taken."""
    client: Ramify = request.app.state.ramify
    await to_thread.run_sync(client.ping, limiter=request.app.state.health_threads)
    return Health()
