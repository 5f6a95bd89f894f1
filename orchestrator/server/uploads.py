"""The route that takes documents: uploaded files, and what other programs push."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from orchestrator.access.caller import Caller, Scope
from orchestrator.access.dependency import caller_with
from orchestrator.client import Ramify
from orchestrator.operations.operation import HttpRoute
from orchestrator.operations.push import IngestTaken, Push, PushInput, PushOptions, offered_of
from orchestrator.server.batch_stream import JSON, LINES
from orchestrator.server.bodies import BodyReaders, PulledBody
from orchestrator.server.multipart import UploadedFiles
from orchestrator.server.routes import client_of, responses_of
from shared.errors import InputError
from shared.settings.faults import json_fault, request_fault

PATH = "/v1/ingests"
_FILES = "multipart/form-data"
_log = logging.getLogger(__name__)
_BODY = {
    "required": True,
    "content": {
        _FILES: {"schema": {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}},
        LINES[0]: {"schema": {"type": "string", "description": "One of `documents` of the JSON form a line."}},
        JSON: {"schema": {"$ref": "#/components/schemas/PushInput"}},
    },
}
router = APIRouter()


@router.post(
    PATH,
    status_code=202,
    operation_id="push",
    response_model=IngestTaken,
    responses=responses_of(HttpRoute("POST", PATH)),
    openapi_extra={"x-scope": Scope.WRITE.value, "requestBody": _BODY},
    tags=["ingests"],
)
async def post_ingest(
    request: Request,
    caller: Annotated[Caller, Depends(caller_with(Scope.WRITE))],
    query: Annotated[PushOptions, Query()],
) -> Response:
    """Put documents in, or remove them: files as multipart, or documents as JSON Lines or JSON.

    The answer comes when all is handed over to the job. What is cut off leaves a job that ends with what came.
    """
    client, settings = client_of(request, caller), request.app.state.settings.server
    readers: BodyReaders = request.app.state.bodies
    header = request.headers.get("content-type", "")
    kind = header.partition(";")[0].strip().lower()
    work, most = Push(client, query).lines, settings.max_upload_bytes
    if kind == JSON:
        work, most = partial(_whole, client, query), settings.max_body_bytes
    elif kind == _FILES:
        work = partial(_files, client, query, header)
    elif kind not in LINES:
        raise InputError("Content-Type", kind, f"send {_FILES}, {LINES[0]} or {JSON}")
    try:
        taken = await readers.run(request, work, most)
    except ClientDisconnect:
        _log.info("a client went away while it sent documents; their job ends with what came")
        return Response(status_code=499)
    return Response(taken.model_dump_json(), 202, {"Location": f"/v1/jobs/{taken.job_id}"}, JSON)


def _files(client: Ramify, options: PushOptions, header: str, body: PulledBody) -> IngestTaken:
    return Push(client, options).put(UploadedFiles(body, header, client.settings.chunking.max_document_bytes))


def _whole(client: Ramify, options: PushOptions, body: PulledBody) -> IngestTaken:
    try:
        found: Any = json.loads(body.read_whole())
    except (ValueError, RecursionError) as error:
        raise InputError("body", "JSON", f"write valid JSON ({json_fault(error)})") from None
    if not isinstance(found, dict):
        raise InputError("body", found, 'write {"documents": [...]}')
    try:
        given = PushInput.model_validate({**options.model_dump(exclude_unset=True), **found})
    except ValidationError as error:
        raise request_fault(error) from None
    own = PushOptions(source=given.source, namespace=given.namespace)
    return Push(client, own).put(offered_of(one) for one in given.documents)
