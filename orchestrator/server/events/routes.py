"""Server-sent events of jobs and of batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse

from orchestrator.access.caller import Caller, Scope
from orchestrator.access.dependency import caller_with
from orchestrator.operations.operation import HttpRoute
from orchestrator.server.events.accounts import BatchWatch
from orchestrator.server.events.hub import EventHub
from orchestrator.server.events.wire import BEGINNING, StreamEntry, stream_id
from orchestrator.server.routes import client_of, responses_of
from shared.jobs import reachable

#: Milliseconds after which a browser connects again.
_RETRY = b"retry: 2000\n\n"
#: Proxies must not hold events back.
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_Id = Annotated[str, Path(alias="id", min_length=1, max_length=100)]
_Reader = Annotated[Caller, Depends(caller_with(Scope.READ))]
_KNOWN, _SAME = "the id of the last event that is known", "the same, for clients that cannot set a header"
#: An id of a Redis stream.
_STREAM_ID = r"^\d{1,20}(-\d{1,20})?$"
_LastEventId = Annotated[str | None, Header(pattern=_STREAM_ID, description=_KNOWN)]
_After = Annotated[str | None, Query(pattern=_STREAM_ID, description=_SAME)]
_LastAccounts = Annotated[str | None, Header(alias="Last-Event-ID", max_length=64, description=_KNOWN)]
_AfterAccounts = Annotated[str | None, Query(alias="after", max_length=64, description=_SAME)]
_WHAT: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events, until the end.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
    204: {"description": "Nothing follows that event: a browser does not connect again."},
}
_JOB, _BATCH = "/v1/jobs/{id}/events", "/v1/batches/{id}/events"
router = APIRouter()


def _described(path: str) -> dict[str, Any]:
    return {
        "response_class": StreamingResponse,  # FastAPI would make a stream of its own of each for EventSourceResponse
        "responses": responses_of(HttpRoute("GET", path)) | _WHAT,
        "openapi_extra": {"x-scope": Scope.READ.value},
        "tags": [path.split("/")[2]],
    }


@router.get(_JOB, **_described(_JOB), operation_id="events")
async def job_events(
    request: Request,
    of: _Id,
    caller: _Reader,
    last_event_id: _LastEventId = None,
    after: _After = None,
) -> Response:
    """Follow a job from its beginning, or behind an event, until it ends.

    An event's id is that of the Redis stream. The last one is `end`, or `dropped` where the client did not keep up.
    """
    given = last_event_id or after
    cursor = (stream_id(given) if given else None) or BEGINNING
    await asyncio.to_thread(client_of(request, caller).status, of)
    hub: EventHub = request.app.state.events
    pages = hub.follow(of, cursor, caller)
    with reachable(request.app.state.settings):
        first = await anext(pages)
    if cursor != BEGINNING and [entry.type for entry in first] == ["end"]:
        await pages.aclose()
        return Response(status_code=204)
    return EventSourceResponse(_written(first, pages), headers=_HEADERS)


@router.get(_BATCH, **_described(_BATCH), operation_id="batch_events")
async def batch_events(
    request: Request,
    of: _Id,
    caller: _Reader,
    last_event_id: _LastAccounts = None,
    after: _AfterAccounts = None,
) -> Response:
    """Follow a batch until all its jobs have ended: each event `accounts` is the batch as it stands, whole."""
    await asyncio.to_thread(client_of(request, caller).batch_status, of)
    watch: BatchWatch = request.app.state.batch_watch
    hub: EventHub = request.app.state.events
    told = _accounts(watch.follow(of, last_event_id or after or ""), hub.places.take(caller))
    return EventSourceResponse(_begun(await anext(told), told), headers=_HEADERS)


async def _written(
    first: Sequence[StreamEntry], pages: AsyncGenerator[Sequence[StreamEntry], None]
) -> AsyncIterator[bytes]:
    yield _RETRY + b"".join(entry.raw for entry in first)
    try:
        async for page in pages:
            yield b"".join(entry.raw for entry in page) or KEEPALIVE_COMMENT
    finally:
        await pages.aclose()


async def _accounts(
    entries: AsyncGenerator[StreamEntry | None, None], place: AbstractContextManager[None]
) -> AsyncGenerator[bytes, None]:
    """Its first part is there at once. Raises: TooManyRequestsError before it."""
    with place:
        yield _RETRY
        try:
            async for entry in entries:
                yield entry.raw if entry else KEEPALIVE_COMMENT
        finally:
            await entries.aclose()


async def _begun(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for part in rest:
            yield part
    finally:
        await rest.aclose()
