"""The FastAPI application: one client for the whole process, routes from the operations, problems, bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, FastAPI, Request, Response
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from orchestrator.access.callers import Callers
from orchestrator.access.guesses import Guesses
from orchestrator.access.places import Places
from orchestrator.client import Ramify
from orchestrator.operations.registry import OPERATIONS
from orchestrator.server import batch_stream, chat, health, login, metrics, openai_errors, problems, routes, uploads
from orchestrator.server.bodies import BodyReaders
from orchestrator.server.bounds import ALL_BUSY, BUSY_S, BodyBounds
from orchestrator.server.entrance import Entrance, needs_no_redis
from orchestrator.server.events import routes as event_routes
from orchestrator.server.events.accounts import BatchWatch
from orchestrator.server.events.hub import KEEPALIVE_S, EventHub
from orchestrator.server.openapi import described
from orchestrator.server.page.overviews import CorpusOverviews
from orchestrator.server.page.router import add_error_pages, page_router
from orchestrator.server.page.visitor import error_page, words_of
from orchestrator.server.problems import GUARDS, asks_for_page, respond_to
from orchestrator.server.queries import known_query
from orchestrator.server.redis_watch import RedisWatch, WhileRedisAnswers
from shared.errors import NotRunningError
from shared.release import release
from shared.settings import Settings

if TYPE_CHECKING:
    from orchestrator.mcp.http import McpPath

#: What pages of other sites may send, where settings name them; no cookie.
_CORS: dict[str, Any] = {
    "allow_methods": ("GET", "POST", "DELETE"),
    "allow_headers": (
        "Authorization", "X-API-Key", "Content-Type", "Idempotency-Key", "Last-Event-ID",
        "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name",
    ),
    "expose_headers": ("Location", "Retry-After", "Mcp-Session-Id"),
}  # fmt: skip
#: Told when no more requests may wait for seconds: quick ones find a thread whatever waits.
_WAITING = "too many requests wait for an answer of a pool: try again in a few seconds"
#: Made once, as the routers that are written by hand are.
_OPERATIONS = routes.router_of(OPERATIONS.values())
#: Their routes refuse parameters of the query that they do not know.
_STRICT = (
    health.router, event_routes.router, batch_stream.router, chat.router, uploads.router, _OPERATIONS,
)  # fmt: skip
#: Paths whose bodies may have any size: their routes bound what they keep.
_STREAMED = (batch_stream.PATH, uploads.PATH)


def make_app(settings: Settings, client: Ramify | None = None) -> FastAPI:
    """The application. It is ready to use at once; its end closes the connections, of a `client` that was given, too.

    Raises: NotRunningError when nothing runs here and the settings name no Redis.
    """
    ramify = client or Ramify(settings)
    counted = metrics.ServerMetrics(ramify.settings)
    callers = Callers(ramify.redis, settings)
    mcp = _mcp(ramify, settings, callers)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = settings.server.threads
        async with AsyncExitStack() as stack:
            hub = EventHub(ramify.settings, most=settings.server.max_listeners)
            app.state.events = await stack.enter_async_context(hub)
            app.state.batch_watch = BatchWatch(ramify.for_tenant(None).batch_status, keepalive_s=KEEPALIVE_S)
            app.state.bodies = BodyReaders()
            if mcp:
                await stack.enter_async_context(mcp.run())
            await stack.enter_async_context(app.state.redis_watch)
            yield
        app.state.overviews.close()
        counted.close()
        ramify.close()

    app = FastAPI(
        title="Ramify",
        version=release() or "0",
        summary="Research questions over your own corpus, answered with citations.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.ramify, app.state.settings, app.state.metrics = ramify, settings, counted
    app.state.overviews = CorpusOverviews()
    app.state.health_threads = CapacityLimiter(health.THREADS)
    app.state.waiting = Places(settings.server.threads // 2, _WAITING, retry_after_s=2.0)
    problems.add_handlers(app)
    app.add_middleware(
        BodyBounds,
        most_bytes=settings.server.max_body_bytes,
        pause_s=settings.server.body_timeout_s,
        streamed=_STREAMED,
    )
    app.state.callers, app.state.guesses = callers, Guesses()
    app.state.requests = Places(settings.server.connections, ALL_BUSY, BUSY_S)
    app.add_middleware(Entrance, callers=callers, settings=settings.server, places=app.state.requests)
    app.state.redis_watch = RedisWatch(ramify.settings)
    app.add_middleware(
        WhileRedisAnswers, watch=app.state.redis_watch, needs_none=needs_no_redis,
        refuse=partial(_refuse_without_redis, remote=callers.needs_key),
    )  # fmt: skip
    if settings.server.origins:
        app.add_middleware(CORSMiddleware, allow_origins=settings.server.origins, **_CORS)
    app.add_middleware(metrics.CountedRequests, metrics=counted)
    app.include_router(metrics.router)
    app.include_router(login.router)
    for router in _STRICT:
        app.include_router(router, dependencies=[Depends(known_query)])
    app.include_router(page_router())
    add_error_pages(app)
    if mcp:
        app.router.routes.append(Route(mcp.path, mcp, include_in_schema=False))
    app.openapi = lambda: described(app, OPERATIONS.values(), settings.strategies)  # type: ignore[method-assign]
    return app


def _refuse_without_redis(request: Request, fault: NotRunningError, *, remote: bool) -> Response:
    path = request.url.path
    if asks_for_page(path, request.headers):
        return error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, words_of(request)("error.no_redis"))
    in_their_form = path.startswith(openai_errors.PATHS)
    found = openai_errors.response_to(fault) if in_their_form else respond_to(fault, remote=remote)
    found.headers.update(GUARDS)
    return found


def _mcp(client: Ramify, settings: Settings, callers: Callers) -> McpPath | None:
    """The path of MCP clients; None where the extra `mcp` is not installed."""
    if find_spec("mcp") is None:
        return None
    from orchestrator.mcp.http import McpPath  # noqa: PLC0415 - an extra of its own

    return McpPath(client, settings, callers.revoked)
