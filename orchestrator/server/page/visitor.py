"""Who looks at the page: the caller, a client bound to it, the language and the colours."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from orchestrator.access.caller import Caller, Scope
from orchestrator.access.dependency import caller_with
from orchestrator.client import Ramify
from orchestrator.server.page.rendering import html, render
from orchestrator.server.page.words import LANGUAGES, Words, asked_language
from orchestrator.server.problems import status_of
from orchestrator.server.routes import client_of
from shared.errors import RamifyError, UnknownCallerError
from shared.models.base import Model
from shared.models.told import FOR_OTHERS

LANGUAGE_COOKIE, THEME_COOKIE = "ramify_language", "ramify_theme"
THEMES = ("auto", "light", "dark")
Told = TypeVar("Told", bound=Model)
_HEADINGS = {403: "denied", 404: "missing", 409: "refused", 422: "refused", 429: "refused", 503: "away"}


@dataclass(frozen=True)
class Visitor:
    """One request for a page."""

    request: Request
    caller: Caller
    client: Ramify

    @property
    def words(self) -> Words:
        """In the visitor's language."""
        return words_of(self.request)

    def page(self, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
        """The page of a template."""
        return page_for(self.request, template, status=status, **context)

    def told(self, found: Told) -> Told:
        """As this visitor may read it: those from elsewhere get only the last names of this machine's paths."""
        if not self.caller.remote:
            return found
        return type(found).model_validate_json(found.model_dump_json(context=FOR_OTHERS))


def visitor_with(scope: Scope) -> Callable[..., Visitor]:
    """The dependency of pages that want `scope`. It raises NotAllowedError for a caller without it."""
    known = Depends(caller_with(scope))  # not in an Annotated: FastAPI reads that by the names of the module

    def visitor(request: Request, caller: Caller = known) -> Visitor:
        return Visitor(request, caller, client_of(request, caller, scope))

    return visitor


ReadVisitor = Annotated[Visitor, Depends(visitor_with(Scope.READ))]
AskVisitor = Annotated[Visitor, Depends(visitor_with(Scope.ASK))]
WriteVisitor = Annotated[Visitor, Depends(visitor_with(Scope.WRITE))]
AdminVisitor = Annotated[Visitor, Depends(visitor_with(Scope.ADMIN))]


class PageRoute(APIRoute):
    """A route whose errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI calls it once."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handle(request)
            except UnknownCallerError:
                return RedirectResponse(f"/login?next={quote(_here(request))}", HTTPStatus.SEE_OTHER)
            except RamifyError as error:
                return error_page(request, status_of(error), str(error))
            except RequestValidationError as error:
                fault = error.errors()[0]
                return error_page(request, 422, f"{'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}")
            except HTTPException as error:
                return error_page(request, error.status_code, str(error.detail))

        return guarded


def error_page(request: Request, status: int, sentence: str) -> HTMLResponse:
    """One sentence, as a page."""
    return page_for(request, "error.html", status=status, heading=_HEADINGS.get(status, "fault"), sentence=sentence)


def words_of(request: Request) -> Words:
    """In the language that was chosen, else in one that the browser asks for."""
    chosen = request.cookies.get(LANGUAGE_COOKIE, "")
    return Words(chosen if chosen in LANGUAGES else asked_language(request.headers.get("accept-language", "")))


def _here(request: Request) -> str:
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def page_for(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A page for a request, with what every template needs; without its frame where a script asks for the inside."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    caller: Caller | None = getattr(request.state, "caller", None)
    given = {
        "here": _here(request),
        "path": request.url.path,
        "theme": chosen if chosen in THEMES else THEMES[0],
        "themes": THEMES,
        "may": {scope.value for scope in caller.scopes} if caller else set(),
        "logged_in": caller is not None and caller.key_id is not None,
        "fragment": request.headers.get("x-fragment") == "1",
        "most_bytes": request.app.state.settings.server.max_body_bytes,
    }
    return html(render(template, words_of(request), **{**given, **context}), status)
