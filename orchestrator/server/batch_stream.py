"""The route that takes batches of any size."""

from __future__ import annotations

import json
import logging
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import Field, TypeAdapter, ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from orchestrator.access.caller import Caller, Scope
from orchestrator.access.dependency import caller_with
from orchestrator.client import Ramify
from orchestrator.operations.batch_post import BatchPost, FullBatchError, PostedBatch, PostedOptions, json_lines
from orchestrator.operations.operation import HttpRoute
from orchestrator.operations.streams import BatchInput
from orchestrator.server.bodies import BodyReaders, PulledBody
from orchestrator.server.problems import Problem, problem_of, respond
from orchestrator.server.routes import client_of, one_value, responses_of
from shared.errors import InputError
from shared.models.base import Model
from shared.settings.faults import json_fault, request_fault

PATH = "/v1/batches"
LINES = ("application/jsonl", "application/x-ndjson", "application/x-jsonlines", "application/json-lines", "text/plain")
JSON = "application/json"
KEY = "Idempotency-Key"
_OPTIONS = TypeAdapter(dict[str, Any])
_log = logging.getLogger(__name__)
router = APIRouter()


class FullBatchProblem(Problem):
    """A lane had no more room: what was `taken`, and the number of the first line that was not."""

    taken: PostedBatch
    refused_from_line: int


_ROUTE = HttpRoute("POST", PATH)
_BODY = {
    "required": True,
    "content": {
        LINES[0]: {"schema": {"type": "string", "description": "A question, or an object with one, a line."}},
        JSON: {"schema": {"$ref": "#/components/schemas/BatchInput"}},
    },
}


class BatchQuery(Model):
    """What holds for a batch whose body are lines. With a JSON body it may stand there."""

    options: str = Field(default="{}", max_length=8_000, description="fields of a question, for each line, as JSON")
    budget: str = Field(default="{}", max_length=8_000, description="what all of it may spend, as JSON")
    name: str = Field(default="", max_length=200, description="what the batch is called")
    webhook: str | None = Field(default=None, max_length=2_000, description="is told when all of its jobs have ended")

    def checked(self) -> PostedOptions:
        """Raises: InputError."""
        own = {"options": _object("options", self.options), "budget": _object("budget", self.budget)}
        return _checked({**own, "name": self.name, "webhook": self.webhook})


@router.post(
    PATH,
    status_code=202,
    operation_id="batch",
    response_model=PostedBatch,
    responses=responses_of(_ROUTE) | {415: {"description": "The body is neither JSON Lines nor JSON."}},
    openapi_extra={"x-scope": Scope.ASK.value, "requestBody": _BODY},
    tags=["batches"],
)
async def post_batch(
    request: Request,
    caller: Annotated[Caller, Depends(caller_with(Scope.ASK))],
    query: Annotated[BatchQuery, Query()],
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> Response:
    """Ask many questions at once: JSON Lines of any size, read as they come, or a JSON array.

    A post that was cut off leaves an open batch, and goes on when it is sent again with the same Idempotency-Key.
    """
    given, key = query.checked(), idempotency_key and one_value(KEY, request.headers)
    client, settings = client_of(request, caller), request.app.state.settings.server
    readers: BodyReaders = request.app.state.bodies
    kind = request.headers.get("content-type", LINES[0]).partition(";")[0].strip().lower()
    try:
        if kind == JSON:
            work, most = _WholeBatch(client, given, request.headers), settings.max_body_bytes
            taken = await readers.run(request, work, most)
        elif kind in LINES:
            taken = await readers.run(request, BatchPost(client, given, key).read, settings.max_upload_bytes)
        else:
            raise InputError("Content-Type", kind, f"send {LINES[0]} or {JSON}")
    except ClientDisconnect:
        _log.info("a client went away while it sent a batch; it goes on with the same Idempotency-Key")
        return Response(status_code=499)
    except FullBatchError as full:
        return _full(full)
    body = taken.model_dump_json()
    return Response(body, 202, {"Location": f"{PATH}/{taken.batch_id}"}, JSON)


class _WholeBatch:
    """As `BatchPost.read`, of a JSON body."""

    def __init__(self, client: Ramify, given: PostedOptions, headers: Headers) -> None:
        self._client, self._given, self._headers = client, given, headers

    def __call__(self, body: PulledBody) -> PostedBatch:
        lines, beside = json_lines(body.read_whole())
        key = one_value(KEY, self._headers, beside.get("idempotency_key"))
        own = {**beside, "questions": ("",), "idempotency_key": key}
        given = _checked({**self._given.model_dump(exclude_defaults=True), **own}, BatchInput)
        return BatchPost(self._client, given, key).take(lines)


def _object(name: str, given: str) -> dict[str, Any]:
    try:
        return _OPTIONS.validate_python(json.loads(given))
    except (ValueError, RecursionError) as error:
        fault = "it is no object" if isinstance(error, ValidationError) else json_fault(error)
        raise InputError(name, given, f'write a JSON object, like {{"top_n": 5}} ({fault})') from None


def _checked(given: dict[str, Any], model: type[PostedOptions] = PostedOptions) -> PostedOptions:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise request_fault(error) from None


def _full(full: FullBatchError) -> Response:
    problem = problem_of(full)
    more = {"taken": full.taken, "refused_from_line": full.lines[0] if full.lines else full.taken.lines + 1}
    body = FullBatchProblem(**{**problem.model_dump(), **more})
    return respond(body, {"Retry-After": "60", "Location": f"{PATH}/{full.batch_id}"})
