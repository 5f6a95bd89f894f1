"""Parameters of queries: a route refuses those that it does not know, whichever way it reads the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from shared.errors import InputError


async def known_query(request: Request) -> None:
    """Raises: InputError for a parameter that the route does not take."""
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    known = sorted(_names(route.dependant))
    if unknown := next((name for name in request.query_params if name not in known), None):
        there_are = f"there are {', '.join(known)}" if known else "this route takes none"
        raise InputError(unknown, request.query_params[unknown], f"there is no such parameter; {there_are}")


def _names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        model: Any = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from (part.alias or name for name, part in model.model_fields.items())
        else:
            yield field.alias
    for inner in dependant.dependencies:
        yield from _names(inner)
