"""Errors in the form of OpenAI's protocol, on the paths that its clients ask."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from orchestrator.operations.wording import over_http
from orchestrator.server.problems import headers_of, status_of
from shared.errors import InputError, NoAnswerError, NotFoundError, RamifyError
from shared.settings.faults import field_fault

#: Paths whose errors have this form.
PATHS = ("/v1/chat/", "/v1/models")
#: OpenAI's clients try again after 409, 429 and 5xx, unless this says no: a job that failed would be asked again.
_NO_RETRY = {"x-should-retry": "false"}
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_log = logging.getLogger(__name__)


class OpenAIRoute(APIRoute):
    """A route whose errors are OpenAI's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's own handler, with errors as responses."""
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except RamifyError as error:
                return response_to(error)
            except RequestValidationError as error:
                return response_to(_fault(error))
            except HTTPException as error:
                return _response(error.status_code, _body(error.status_code, str(error.detail)), error.headers or {})

        return handle


def response_to(error: RamifyError) -> Response:
    """An error of ours as a response."""
    status = _status(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("%s: %s", type(error).__name__, error)
    no_retry = _NO_RETRY if isinstance(error, NoAnswerError) else {}
    return _response(status, body(error), headers_of(error) | no_retry)


def body(error: RamifyError) -> str:
    """An error of ours as JSON."""
    return _body(_status(error), over_http(error, str(error)), *_named(error))


def _status(error: RamifyError) -> int:
    if isinstance(error, NoAnswerError):
        return 500
    status = status_of(error)
    return 400 if status == HTTPStatus.UNPROCESSABLE_ENTITY else status


def _named(error: RamifyError) -> tuple[str | None, str | None]:
    """The parameter at fault, and OpenAI's code."""
    if isinstance(error, NotFoundError) and error.field == "model":
        return "model", "model_not_found"
    if isinstance(error, InputError):
        return error.field, "invalid_value"
    return None, None


def _body(status: int, message: str, param: str | None = None, code: str | None = None) -> str:
    kind = _KINDS.get(status, "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error")
    said = {"message": message, "type": kind, "param": param, "code": code or _CODES.get(status)}
    return json.dumps({"error": said}).encode("utf-8", "backslashreplace").decode()


def _fault(error: RequestValidationError) -> InputError:
    fault: Any = error.errors()[0]
    if fault["type"] == "json_invalid":
        return InputError("body", "JSON", f"it is no JSON ({fault['ctx']['error']})")
    place, *where = fault["loc"]
    return field_fault({**fault, "loc": tuple(where) or (place,)})


def _response(status: int, content: str, headers: Mapping[str, str]) -> Response:
    return Response(content, status, dict(headers), "application/json")
