"""`POST /login` and `/logout`: a key becomes a cookie that scripts cannot read. The form is drawn by the page."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from pydantic import SecretStr

from orchestrator.access.callers import Callers
from orchestrator.access.guesses import WINDOW_S, Guesses
from orchestrator.access.hosts import is_loopback
from orchestrator.server.entrance import cookie_name
from orchestrator.server.problems import respond_to
from shared.errors import NotAllowedError, RamifyError, TooManyRequestsError, UnknownCallerError

router = APIRouter(include_in_schema=False)
_TOO_MANY = "too many wrong keys from this address: try again in a minute"
_LONGEST_KEY = 200


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Take the form's `key`, set the cookie, go to its `next`; back to the form with `error` where that fails."""
    callers: Callers = request.app.state.callers
    guesses: Guesses = request.app.state.guesses
    address = request.client.host if request.client else ""
    form = await request.form(max_files=0, max_fields=5, max_part_size=4_000)
    there = _inside(str(form.get("next") or "/"))
    try:
        if guesses.too_many(address):
            raise TooManyRequestsError(_TOO_MANY, WINDOW_S)
        key = SecretStr(str(form.get("key") or "")[:_LONGEST_KEY].strip())
        cookie = await run_in_threadpool(callers.log_in, key)
    except RamifyError as error:
        if isinstance(error, UnknownCallerError):
            guesses.note(address)
        return _failed(request, error, there)
    response = RedirectResponse(there, HTTPStatus.SEE_OTHER)
    _set_cookie(request, response, cookie.get_secret_value(), callers.logins.lasts_s)
    return response


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the login, here and in Redis. Raises: NotAllowedError for a form of another page."""
    callers: Callers = request.app.state.callers
    cookie = request.cookies.get(cookie_name(request.headers), "")
    if cookie:
        if getattr(request.state, "caller", None) is None:
            raise NotAllowedError("this login has ended, or its form is of another page: open Ramify's own page")
        await run_in_threadpool(callers.log_out, cookie)
    response = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    _set_cookie(request, response, "", 0)
    return response


def _set_cookie(request: Request, response: Response, value: str, seconds: int) -> None:
    secure = not is_loopback(request.headers.get("host", ""))
    name = cookie_name(request.headers)
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="strict", secure=secure, path="/")


def _failed(request: Request, error: RamifyError, there: str) -> Response:
    """A browser goes back to the form; programs get the problem."""
    if "text/html" not in request.headers.get("accept", ""):
        return respond_to(error)
    why = "wait" if isinstance(error, TooManyRequestsError) else "wrong"
    return RedirectResponse(f"/login?error={why}&next={quote(there)}", HTTPStatus.SEE_OTHER)


def _inside(path: str) -> str:
    """A path of this server, or its first page: a login leads to no other site."""
    is_inside = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if is_inside and path.isascii() else "/"
