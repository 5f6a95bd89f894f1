"""Chat completions and models, as OpenAI's clients ask for them; errors in OpenAI's form."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic import BaseModel

from orchestrator.access.caller import Caller, Scope
from orchestrator.access.dependency import caller_with
from orchestrator.client import Ramify
from orchestrator.operations.chat import ChatJob, ChatModelInput, NoModelsInput, begin, completed
from orchestrator.operations.chat_reply import ChatChunk, ChatCompletion, ChatModel, ChatModels, ChunkChoice, pieces
from orchestrator.operations.chat_request import ChatRequest
from orchestrator.operations.registry import OPERATIONS
from orchestrator.server import openai_errors
from orchestrator.server.events.hub import EventHub
from orchestrator.server.routes import client_of
from shared.errors import NotRunningError, RamifyError
from shared.jobs import reachable

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_DONE = format_sse_event(data_str="[DONE]")
_ENDS = "the server stops: ask again in a moment"
_log = logging.getLogger(__name__)


router = APIRouter(route_class=openai_errors.OpenAIRoute, tags=["chat"])
_Reader = Annotated[Caller, Depends(caller_with(Scope.READ))]
_STREAM = {"text/event-stream": {"schema": {"type": "string", "description": "Chunks, if `stream` is true."}}}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": said, "content": {"application/json": {"schema": {"type": "object"}}}}
    for status, said in {
        400: "A value cannot be used; `error.param` says which.",
        401: "No key, or one that is not known.",
        403: "The key may not do that.",
        404: "There is no such model.",
        429: "Too much waits, or was asked.",
        500: "The question ended without an answer, or the server has a fault.",
        503: "A part of Ramify does not answer.",
    }.items()
}


@router.get("/v1/models", operation_id="models", responses=_ERRORS, openapi_extra={"x-scope": Scope.READ.value})
def models(request: Request, caller: _Reader) -> ChatModels:
    """List the models that a chat may name: `ramify`, `ramify-batch`, and one for each strategy."""
    found: ChatModels = OPERATIONS["models"].run(client_of(request, caller), NoModelsInput())
    return found


@router.get(
    "/v1/models/{model:path}", operation_id="model", responses=_ERRORS, openapi_extra={"x-scope": Scope.READ.value}
)
def one_model(request: Request, caller: _Reader, model: str) -> ChatModel:
    """Show one model."""
    found: ChatModel = OPERATIONS["model"].run(client_of(request, caller), ChatModelInput(model=model))
    return found


@router.post(
    "/v1/chat/completions",
    operation_id="chat",
    response_class=StreamingResponse,
    responses=_ERRORS | {200: {"description": "The completion.", "model": ChatCompletion, "content": _STREAM}},
    openapi_extra={"x-scope": Scope.ASK.value},
)
async def chat(
    request: Request, given: ChatRequest, caller: Annotated[Caller, Depends(caller_with(Scope.ASK))]
) -> Response:
    """Answer the last message of a chat out of the corpus. Sources stand at the end of the text and as annotations."""
    client = client_of(request, caller)
    job = await to_thread.run_sync(begin, client, given)
    job = job._replace(base_url=str(request.base_url).rstrip("/"))
    followed = _Followed(request, client, job)
    if given.stream:
        with_usage = bool(given.stream_options and given.stream_options.include_usage)
        return EventSourceResponse(followed.chunks(with_usage=with_usage), headers=_HEADERS)
    found = await followed.completion()
    return Response(status_code=499) if found is None else Response(_json(found), media_type="application/json")


class _Followed:
    """One completion on its way. Where its client goes away, its job is cancelled (`server.cancel_chats`)."""

    def __init__(self, request: Request, client: Ramify, job: ChatJob) -> None:
        self._request, self._client, self._job = request, client, job
        self._hub: EventHub = request.app.state.events
        self._settings = request.app.state.settings

    async def completion(self) -> ChatCompletion | None:
        """The whole completion; None where nobody waits for it any more. Raises: RamifyError."""
        ended, gone = asyncio.create_task(self._ended()), asyncio.create_task(self._gone())
        async with self._cancelled_if_left():
            try:
                await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                ended.cancel()
        if gone.done() and not ended.done():
            await self._cancel()
            return None
        await ended
        return await self._completed()

    async def _ended(self) -> None:
        async for _ in self._comments():
            pass

    async def _gone(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass

    async def chunks(self, *, with_usage: bool) -> AsyncIterator[bytes]:
        """Chunks: the role at once, comments while the job runs, the text in pieces, its annotations, what it took."""
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async with self._cancelled_if_left():
                async for comment in self._comments():
                    yield comment
            found = await self._completed()
        except RamifyError as error:
            yield format_sse_event(data_str=openai_errors.body(error))
            return
        reply = found.choices[0].message
        for piece in pieces(reply.content):
            yield self._chunk({"content": piece})
        if reply.annotations:
            yield self._chunk({"annotations": [one.model_dump() for one in reply.annotations]})
        yield self._chunk({}, finish_reason="stop", ramify=found.ramify)
        if with_usage:
            last = ChatChunk(id=found.id, created=found.created, model=found.model, choices=(), usage=found.usage)
            yield format_sse_event(data_str=_json(last))
        yield _DONE

    async def _comments(self) -> AsyncIterator[bytes]:
        """A comment for each step of the job, until it has ended; at least some when it is quiet."""
        if self._job.job_id is None:
            return
        pages = self._hub.follow(self._job.job_id, caller=self._request.state.caller)
        try:
            with reachable(self._settings):
                async for page in pages:
                    said = " ".join(dict.fromkeys(entry.data.get("state") or entry.type for entry in page))
                    yield format_sse_event(comment=said) if said else KEEPALIVE_COMMENT
                    if page and page[-1].type == "end":
                        return
                    if page and page[-1].type == "dropped":
                        raise NotRunningError("the job goes on, but could not be followed: ask for its result")
        finally:
            await pages.aclose()
        raise NotRunningError(_ENDS)

    @asynccontextmanager
    async def _cancelled_if_left(self) -> AsyncIterator[None]:
        try:
            yield
        except RamifyError:
            raise
        except BaseException:
            await self._cancel()
            raise

    async def _cancel(self) -> None:
        if self._job.job_id is None or not self._settings.server.cancel_chats:
            return
        with anyio.CancelScope(shield=True):
            try:
                await to_thread.run_sync(self._cancel_job, self._job.job_id)
            except RamifyError as error:
                _log.warning("job %s goes on without its client: %s", self._job.job_id, error)

    def _cancel_job(self, job_id: str) -> None:
        self._client.cancel(job_id, reason="the client of the chat went away")

    async def _completed(self) -> ChatCompletion:
        return await to_thread.run_sync(completed, self._client, self._job)

    def _chunk(self, delta: dict[str, Any], **more: Any) -> bytes:
        choice = ChunkChoice(delta=delta, finish_reason=more.pop("finish_reason", None))
        job = self._job
        chunk = ChatChunk(id=job.id, created=job.created, model=job.model, choices=(choice,), **more)
        return format_sse_event(data_str=_json(chunk))


def _json(model: BaseModel) -> str:
    """`usage` and `ramify` stand in the chunks that have them."""
    unsaid = {name for name in ("usage", "ramify") if getattr(model, name, None) is None}
    return model.model_dump_json(exclude=unsaid)
