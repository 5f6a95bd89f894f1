"""Templates to HTML: all data is escaped, hidden characters are taken out, and browsers run our own files alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from orchestrator.diagnosis.wording import duration
from orchestrator.operations.wording import on_page
from orchestrator.server.page.markup import inline
from orchestrator.server.page.sayings import told
from orchestrator.server.page.words import LANGUAGES, Words
from orchestrator.text_lines import json_text, one_line
from shared.hidden import visible

#: Nothing from another host, no inline script or style, no frame; strings become HTML in one named place only.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types ramify"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all forms would say that they come from nowhere
    "Cache-Control": "no-store",
}
_STATIC = "static"
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
#: Longest part of an identifier that is shown.
_SHORT = 8


def _shown(value: object) -> object:
    return visible(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("orchestrator.server.page", "templates"), autoescape=True, undefined=StrictUndefined,
        finalize=_shown, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"score": _score, "seconds": duration, "moment": _moment, "iso": _iso, "money": _money}
    made.filters |= {"one_line": one_line, "short": lambda text: text[:_SHORT], "file": static_url}
    made.filters |= {"as_data": as_data, "plain_json": json_text, "on_page": on_page, "told": _told, "inline": inline}
    return made


def render(template: str, words: Words, **context: Any) -> str:
    """The HTML of a template. `t` are the words; what stands in `context` is data and is escaped."""
    return _environment().get_template(template).render(t=words, languages=LANGUAGES, **context)


def html(body: str, status: int = 200) -> HTMLResponse:
    """A page with its headers."""
    return HTMLResponse(body, status, headers=HEADERS)


def as_data(value: object) -> Markup:
    """JSON for a double-quoted attribute."""
    return Markup.escape(json_text(value, ascii_only=True))


@pass_context
def _told(context: Context, text: str) -> str:
    return told(context["t"], text)


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _money(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _iso(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Name -> bytes and media type. Only what is shipped here is ever read."""
    found = {}
    for file in sorted(resources.files(__package__).joinpath(_STATIC).iterdir(), key=lambda file: file.name):
        suffix = f".{file.name.rpartition('.')[2]}"
        if suffix in _TYPES:
            found[file.name] = (file.read_bytes(), _TYPES[suffix])
    return found


@cache
def _version() -> str:
    """The beginning of the digest of all files: scripts that import each other have it in their path."""
    content = b"".join(content for content, _ in static_files().values())
    return hashlib.sha256(content).hexdigest()[:12]


def static_url(name: str) -> str:
    """The address of a shipped file; it changes with the files, so that browsers may keep them."""
    return f"/static/{_version()}/{name}"


def static_response(version: str, name: str) -> Response | None:
    """A shipped file; None where there is none of that name."""
    if (found := static_files().get(name)) is None:
        return None
    content, media_type = found
    kept = {"Cache-Control": "public, max-age=31536000, immutable"} if version == _version() else {}
    return Response(content, media_type=media_type, headers={**HEADERS, **kept})
