"""`/metrics` in Prometheus' formats, of the job store and of this process's requests; and the traces of requests."""

from __future__ import annotations

import hmac
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.access.caller import Scope as Granted
from orchestrator.access.dependency import caller
from orchestrator.metrics.collector import StoreCollector
from orchestrator.metrics.snapshot import SnapshotReader
from shared.connections.connect import connect
from shared.errors import UnknownCallerError
from shared.settings import Settings
from shared.tasks.app import make_app as make_celery
from shared.tracing.spans import span, valid

#: Seconds for one command of a scrape, which is not tried again: Prometheus gives up after ten.
_COMMAND_S = 2.0
_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
router = APIRouter()
disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, for nothing


class ServerMetrics:
    """The registry of one application, with its own connection to Redis."""

    def __init__(self, settings: Settings) -> None:
        self.registry = CollectorRegistry()
        self._client, self._celery = connect(settings, retries=0, timeout_s=_COMMAND_S), make_celery(settings)
        reader = SnapshotReader(self._client, self._celery, settings)
        self.registry.register(StoreCollector(reader.read, settings))
        names = ("method", "route", "status")
        text = "Requests that this process has answered"
        self.requests = Counter("ramify_http_requests", text, names, registry=self.registry)
        text = "From a request to the end of its answer"
        self.seconds = Histogram(
            "ramify_http_request_seconds", text, ("route",), buckets=_SECONDS, registry=self.registry
        )

    def close(self) -> None:
        """Close its connections."""
        self._client.close()
        self._celery.close()


class CountedRequests:
    """Counts requests by route, never by path: paths hold ids. Traces them while traces are on."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note the status that it gets."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with _traced(scope):
                await self._app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.monotonic() - began)


def _traced(scope: Scope) -> AbstractContextManager[object]:
    """A span for what asks for work, and for what its caller traces; not for those who only look again and again."""
    given = next((value for name, value in scope["headers"] if name == b"traceparent"), b"")
    parent = valid(given.decode("latin-1"))
    if scope["method"] != "POST" and not parent:
        return nullcontext()
    told = {"http.request.method": scope["method"], "url.path": scope["path"]}
    return span(scope["method"], "server", parent=parent, attributes=told)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


async def scraper(request: Request) -> None:
    """Raises: UnknownCallerError, NotAllowedError for whoever may not read the metrics."""
    token = request.app.state.settings.telemetry.metrics_token.get_secret_value()
    given = request.headers.get("authorization", "")
    if token and hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return
    found = await caller(request)
    if token and found.key_id is None:
        raise UnknownCallerError("give telemetry.metrics_token as the bearer token, or an admin key")
    found.check(Granted.ADMIN)


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request, _: Annotated[None, Depends(scraper)]) -> Response:
    """All metrics, in the format that the scraper asks for."""
    own: ServerMetrics = request.app.state.metrics
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    body = encode(own.registry)
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-store"})
