"""The caller of a request, as FastAPI's routes and middleware get it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request

from orchestrator.access.caller import LOCAL, Caller, Scope


async def caller(request: Request) -> Caller:
    """Who calls; kept in `request.state.caller`."""
    request.state.caller = LOCAL
    return LOCAL


def caller_with(scope: Scope) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """The dependency of routes that want `scope`. It raises NotAllowedError for a caller without it."""

    async def checked(found: Annotated[Caller, Depends(caller)]) -> Caller:
        found.check(scope)
        return found

    return checked
