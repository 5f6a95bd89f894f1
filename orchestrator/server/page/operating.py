"""The page of operators: lanes, pools, model servers, the cache, dead letters. Of all tenants."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from orchestrator.local.state import read_state
from orchestrator.server.page.visitor import AdminVisitor, PageRoute

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_DEAD = 50


@router.get("/operate")
def operate(visitor: AdminVisitor) -> Response:
    """Everything an operator looks at first. Raises: NotRunningError."""
    client, operator = visitor.client, visitor.client.operator
    stack = read_state(client.settings)
    return visitor.page(
        "operate.html",
        lanes=operator.lanes(),
        pools=operator.pools(),
        gates=operator.gates(),
        stats=operator.stats(),
        cache=operator.cache(),
        flower=stack.flower_url if stack else "",
        dead=list(client.dead.list(_DEAD)),
        dead_count=client.dead.count(),
    )


@router.post("/operate/dead/{dead_letter_id}/replay")
def replay(visitor: AdminVisitor, dead_letter_id: str) -> Response:
    """Try a dead letter's work again."""
    done = visitor.client.dead.replay(dead_letter_id)
    return RedirectResponse(f"/jobs/{done.job_id}" if done.job_id else "/operate", HTTPStatus.SEE_OTHER)


@router.post("/operate/dead/{dead_letter_id}/drop")
def drop(visitor: AdminVisitor, dead_letter_id: str) -> Response:
    """Forget a dead letter."""
    visitor.client.dead.drop(dead_letter_id)
    return RedirectResponse("/operate", HTTPStatus.SEE_OTHER)
