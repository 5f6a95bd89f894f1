"""Files that a form sends without scripts: a batch, documents. With scripts they go to the API as streams."""

from __future__ import annotations

import io
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from orchestrator.operations.batch_post import BatchPost, PostedOptions
from orchestrator.operations.push import Push, PushOptions
from orchestrator.server.multipart import UploadedFiles
from orchestrator.server.page.visitor import AskVisitor, PageRoute, WriteVisitor
from shared.errors import InputError
from shared.settings.faults import request_fault

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_MOST_FILES, _MOST_FIELDS, _MOST_NAME = 1_000, 10, 200


@dataclass(frozen=True)
class SentForm:
    """A multipart body, which the server bounds, and its fields."""

    body: bytes
    content_type: str
    fields: dict[str, str]

    def files(self) -> UploadedFiles:
        """Its files, one after the other."""
        return UploadedFiles(io.BytesIO(self.body), self.content_type, len(self.body))


async def sent(request: Request) -> SentForm:
    """The form of a request."""
    body = await request.body()
    async with request.form(max_files=_MOST_FILES, max_fields=_MOST_FIELDS) as form:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
    return SentForm(body, request.headers.get("content-type", ""), fields)


Sent = Annotated[SentForm, Depends(sent)]


@router.post("/batches")
def post_batch(visitor: AskVisitor, form: Sent) -> Response:
    """Ask the questions of a file, and go to the page of the batch."""
    offered = next(iter(form.files()), None)
    if offered is None or offered.document is None:
        raise InputError("file", offered.name if offered else "", (offered and offered.fault) or "choose a file")
    options = PostedOptions(name=offered.name[:_MOST_NAME])
    content = offered.document.content or b""
    lines = io.BytesIO(content.encode() if isinstance(content, str) else content)
    made = BatchPost(visitor.client, options).read(lines)
    return RedirectResponse(f"/batches/{made.batch_id}", HTTPStatus.SEE_OTHER)


@router.post("/corpus")
def put_in(visitor: WriteVisitor, form: Sent) -> Response:
    """Put files in, and go to the page of the job that does it."""
    try:
        options = PushOptions.model_validate({name: form.fields[name] for name in ("source", "namespace")})
    except KeyError as error:
        raise InputError(str(error.args[0]), "", "it has to be given") from None
    except ValidationError as error:
        raise request_fault(error) from None
    made = Push(visitor.client, options).put(form.files())
    return RedirectResponse(f"/jobs/{made.job_id}", HTTPStatus.SEE_OTHER)
