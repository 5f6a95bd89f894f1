"""Errors over HTTP: one problem+json (RFC 9457) for each, with the sentence that the command line shows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from orchestrator.operations.wording import over_http
from shared.errors import (
    BatchCancelledError,
    ConflictError,
    IngestUnderWayError,
    InputError,
    LaneFullError,
    NoAnswerError,
    NotAllowedError,
    NotFoundError,
    NotRunningError,
    RamifyError,
    TooManyRequestsError,
    UnknownCallerError,
    shown,
)
from shared.models.base import Model
from shared.settings.faults import field_fault

MEDIA_TYPE = "application/problem+json"
#: On every reply that says nothing else: no frames, no other readings, no code, kept by no browser or proxy.
GUARDS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: Seconds after which a caller may try again, where nobody knows better.
_RETRY_AFTER_S = 5
_STATUS: tuple[tuple[type[RamifyError], int], ...] = (
    (NotFoundError, 404),
    (ConflictError, 409),
    (InputError, 422),
    (LaneFullError, 429),
    (TooManyRequestsError, 429),
    (BatchCancelledError, 409),
    (NoAnswerError, 409),
    (UnknownCallerError, 401),
    (NotAllowedError, 403),
    (NotRunningError, 503),
)
_log = logging.getLogger(__name__)


class Problem(Model):
    """What went wrong. `detail` is a sentence that says what to do; `field`, `value` and `fix` are its parts.

    `type` is always about:blank, so `title` is that of the status. `job_id`: the job that is in the way.
    """

    type: str = "about:blank"
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    field: str | None = None
    value: str | None = None
    fix: str | None = None
    job_id: str | None = None


def status_of(error: RamifyError) -> int:
    """The HTTP status of an error of ours; a pool tells of bad input by the exit code alone."""
    otherwise = 422 if error.exit_code == InputError.exit_code else 500
    return next((status for kind, status in _STATUS if isinstance(error, kind)), otherwise)


def problem_of(error: RamifyError) -> Problem:
    """An error of ours as a problem."""
    status, parts = status_of(error), dict[str, str]()
    if isinstance(error, InputError):
        parts = {"field": error.field, "value": _bare(error.value), "fix": over_http(error, error.fix)}
    if isinstance(error, IngestUnderWayError):
        parts["job_id"] = error.job_id
    return Problem(
        title=HTTPStatus(status).phrase, status=status, detail=_printable(over_http(error, str(error))), **parts
    )


def respond(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as a response."""
    body = problem.model_dump_json(exclude_none=True)
    return Response(body, problem.status, headers, MEDIA_TYPE)


def refuse(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A problem of that status and sentence as a response."""
    return respond(Problem(title=HTTPStatus(status).phrase, status=status, detail=detail), headers)


def add_handlers(app: FastAPI) -> None:
    """Let every error of `app` become a problem."""
    app.add_exception_handler(RamifyError, _on_ours)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_unforeseen)


async def _on_ours(request: Request, error: Exception) -> Response:
    if not isinstance(error, RamifyError):
        raise error
    caller = getattr(request.state, "caller", None)
    return respond_to(error, remote=caller is None or caller.remote)


def respond_to(error: RamifyError, *, remote: bool = False) -> Response:
    """An error of ours as a response. A `remote` caller learns no addresses and folders of what does not work."""
    problem = problem_of(error)
    if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("%s: %s", type(error).__name__, error)
    if remote and problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        problem = problem.model_copy(update={"detail": _INSIDE})
    return respond(problem, headers_of(error))


def asks_for_page(path: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser asks, which shows pages and no problems."""
    return "text/html" in headers.get("accept", "") and not path.startswith("/v1/")


def headers_of(error: RamifyError) -> dict[str, str]:
    """What else a response to an error of ours says: how to show a key, or when to try again."""
    if isinstance(error, UnknownCallerError):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, TooManyRequestsError):
        return {"Retry-After": str(max(1, round(error.retry_after)))}
    may_pass = isinstance(error, LaneFullError | NotRunningError)
    may_pass = may_pass or (isinstance(error, NoAnswerError) and not error.terminal)
    return {"Retry-After": str(_RETRY_AFTER_S)} if may_pass else {}


async def _on_invalid(_: Request, error: Exception) -> Response:
    fault: Any = error.errors()[0] if isinstance(error, RequestValidationError) else None
    if fault is None:
        raise error
    if fault["type"] == "json_invalid":
        return refuse(400, f"the body is no JSON: {fault['ctx']['error']}")
    if isinstance(fault["input"], bytes):
        return refuse(415, "the body is taken as JSON only: send the header Content-Type: application/json")
    place, *where = fault["loc"]
    return respond(problem_of(field_fault({**fault, "loc": tuple(where) or (place,)})))


async def _on_http(request: Request, error: Exception) -> Response:
    """What the framework raises itself: no such path, no such method, a body that cannot be read."""
    if not isinstance(error, HTTPException):
        raise error
    phrase = HTTPStatus(error.status_code).phrase
    own = error.detail if error.detail != phrase else phrase.lower()
    said = _SENTENCES.get(error.status_code) or _OTHERWISE.get(error.detail) or own
    if error.status_code == HTTPStatus.NOT_FOUND and request.url.path.startswith(_DOCUMENTS):
        said = _NO_SLASH
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_methods(request))
    return refuse(error.status_code, said, headers)


def _methods(request: Request) -> list[str]:
    """The methods of all routes of a path: each of them knows its own alone."""
    found = set[str]()
    for route in request.app.routes:
        matched, _ = route.matches(request.scope)
        if matched is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return sorted(found)


async def _on_unforeseen(*_: object) -> Response:
    """The server logs the traceback; callers learn nothing of the inside."""
    return refuse(500, "unforeseen: the log of the server says what went wrong", GUARDS)


_INSIDE = "a part of Ramify does not answer or has failed: try again in a few seconds, or tell its operator"
#: Of the framework's own words.
_OTHERWISE = {
    "There was an error parsing the body": "the body is no JSON: it is nested too deeply, a number in it has too many "
    "digits, or it is not UTF-8"
}
_DOCUMENTS = "/v1/documents/"
_NO_SLASH = (
    "there is no such path: name a document by its id here; GET /v1/show?document=PATH takes a path, and tells the id"
)
_SENTENCES = {
    404: "there is no such path: /openapi.json lists all",
    405: "this path does not take that method: the header Allow says which",
}


def _bare(value: object) -> str:
    """A value as it was written: JSON has quotes of its own."""
    text = shown(value)
    return text[1:].removesuffix(text[0]) if isinstance(value, str) else text


def _printable(text: str) -> str:
    """Half surrogate pairs are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
