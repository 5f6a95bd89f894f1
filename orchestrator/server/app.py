"""The FastAPI application: one client for the whole process, routes from the operations, problems, bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI

from orchestrator.client import Ramify
from orchestrator.operations.registry import OPERATIONS
from orchestrator.server import health, problems, routes
from orchestrator.server.bounds import BodyBounds
from shared.settings import Settings


def make_app(settings: Settings, client: Ramify | None = None) -> FastAPI:
    """The application. It is ready to use at once; its end closes the connections, of a `client` that was given, too.

    Raises: NotRunningError when nothing runs here and the settings name no Redis.
    """
    ramify = client or Ramify(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        ramify.close()

    app = FastAPI(
        title="Ramify",
        version=_version(),
        summary="Research questions over your own corpus, answered with citations.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.ramify, app.state.settings = ramify, settings
    problems.add_handlers(app)
    app.add_middleware(BodyBounds, most_bytes=settings.server.max_body_bytes, pause_s=settings.server.body_timeout_s)
    app.include_router(health.router)
    app.include_router(routes.router_of(OPERATIONS.values()))
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the schema of problems that all routes refer to."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = routes.PROBLEM_SCHEMA
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = document
    return app.openapi_schema


def _version() -> str:
    try:
        return version("ramify")
    except PackageNotFoundError:
        return "0"
