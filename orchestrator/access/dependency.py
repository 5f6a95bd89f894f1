"""The caller of a request, as FastAPI's routes get it: the server's entrance has found it before any body is read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request

from orchestrator.access.caller import Caller, Scope
from shared.errors import UnknownCallerError


async def caller(request: Request) -> Caller:
    """Who calls. Raises: UnknownCallerError on a path that everybody may ask for, where nobody has been found."""
    found: Caller | None = getattr(request.state, "caller", None)
    if found is None:
        raise UnknownCallerError("this needs an API key: send it as `Authorization: Bearer rmf_...`")
    return found


def caller_with(scope: Scope) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """The dependency of routes that want `scope`. It raises NotAllowedError for a caller without it."""

    async def checked(found: Annotated[Caller, Depends(caller)]) -> Caller:
        found.check(scope)
        return found

    return checked
