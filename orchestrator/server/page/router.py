"""All routes of the page, and what belongs to none of its parts: files that it is made of, language and colours."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from orchestrator.server.page import batches, comparing, documents, operating, questions, sending
from orchestrator.server.page.rendering import HEADERS, static_response
from orchestrator.server.page.visitor import (
    LANGUAGE_COOKIE,
    THEME_COOKIE,
    THEMES,
    PageRoute,
    error_page,
    page_for,
    words_of,
)
from orchestrator.server.page.words import LANGUAGES
from orchestrator.server.problems import asks_for_page
from shared.errors import NotFoundError

_YEAR_S = 31_536_000


def page_router() -> APIRouter:
    """The router of the page, at the root."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    router.add_api_route("/static/{version}/{name}", static_file, methods=["GET"])
    router.add_api_route("/look", look, methods=["GET"])
    router.add_api_route("/login", login, methods=["GET"])
    for part in (questions, batches, documents, sending, operating, comparing):
        router.include_router(part.router)
    return router


def add_error_pages(app: FastAPI) -> None:
    """Let a browser that asks for a page that is not there get one; what is below /v1 stays a problem."""
    otherwise: Any = app.exception_handlers[HTTPException]

    async def on_http(request: Request, error: Exception) -> Response:
        is_missing = isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND
        if is_missing and asks_for_page(request.url.path, request.headers):
            return error_page(request, HTTPStatus.NOT_FOUND, words_of(request)("error.no_page"))
        found: Response = await otherwise(request, error)
        return found

    app.add_exception_handler(HTTPException, on_http)


async def static_file(version: str, name: str) -> Response:
    """A script, a style or a picture of the page. Raises: NotFoundError."""
    if (found := static_response(version, name)) is None:
        raise NotFoundError("file", name, "the page has no such file")
    return found


async def login(request: Request, error: str = "") -> Response:
    """The form for a key; what it does is the server's (`orchestrator.server.login`)."""
    there = request.query_params.get("next", "/")
    return page_for(request, "login.html", next=there, error=error if error in {"wrong", "wait"} else "")


async def look(request: Request, language: str = "", theme: str = "", back: str = "/") -> Response:
    """Keep the language or the colours that were chosen, and go back to a path of this site."""
    inside = back.startswith("/") and not back.startswith("//") and "\\" not in back and back.isprintable()
    response = RedirectResponse(back if inside else "/", HTTPStatus.SEE_OTHER, headers=HEADERS)
    for cookie, value, known in ((LANGUAGE_COOKIE, language, LANGUAGES), (THEME_COOKIE, theme, THEMES)):
        if value in known:
            secure = request.url.scheme == "https"
            response.set_cookie(cookie, value, max_age=_YEAR_S, samesite="lax", httponly=True, secure=secure)
    return response
