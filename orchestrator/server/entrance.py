"""What every request passes first: the name it is for, the site it is from, who calls. Then headers for every reply.

It stands before any body is read and any route is looked for, so a path is open to nobody unless it is named here.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection
from contextlib import ExitStack
from urllib.parse import quote

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.access.callers import Callers, Known, Presented
from orchestrator.access.hosts import from_elsewhere, is_loopback, may_ask, own_names
from orchestrator.access.keys import KEY_PREFIX
from orchestrator.access.places import Places
from orchestrator.server import openai_errors
from orchestrator.server.problems import GUARDS, asks_for_page, respond_to
from shared.errors import NotAllowedError, NotRunningError, RamifyError, UnknownCallerError
from shared.settings.services import ServerSettings

#: Open to everybody, without asking who it is: health, and what pages are made of.
_PUBLIC, _PUBLIC_BELOW = frozenset({"/healthz", "/readyz", "/favicon.ico"}), "/static/"
#: Open to everybody, by routes that look themselves who it is, if that is known.
_METRICS = "/metrics"
_OPEN = frozenset({_METRICS, "/login", "/logout", "/look"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: Seconds between two looks whether the keys of requests that are still answered hold.
_LOOK_S = 2.0
#: Look-ups of callers at once; they have threads of their own, so that slow requests keep nobody at the door.
_LOOKUPS = 16
_OTHER_NAME = "this server does not answer to that name: the setting server.hosts lists the names that it has"
_OTHER_SITE = "a page of another site may not send this: open Ramify's own page, or name the site in server.origins"


class Entrance:
    """Refuses what may not in, and what is beyond a key's share of the connections.

    Tells the others in `request.state` who calls (`caller`), and `csrf` of a login.
    """

    def __init__(self, app: ASGIApp, callers: Callers, settings: ServerSettings, places: Places) -> None:
        """`places`: for requests of keys."""
        self._app, self._callers, self._places = app, callers, places
        self._names = own_names(settings.host, settings.hosts)
        self._origins = frozenset(map(str.lower, settings.origins))
        self._watch = KeyWatch(callers)
        self._limit = anyio.CapacityLimiter(_LOOKUPS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in GUARDS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        with ExitStack() as places:
            try:
                self._check_site(scope, headers)
                known = await self._known(scope, headers)
                if known and known.caller.key_id is not None:
                    places.enter_context(self._places.take(known.caller))
            except RamifyError as error:
                await _refusal(error, scope, headers)(scope, receive, guarded)
                return
            if known is not None:
                scope.setdefault("state", {}).update(caller=known.caller, csrf=known.csrf)
            if known is None or known.caller.key_id is None:
                await self._app(scope, receive, guarded)
            else:
                await self._watch.run(known.caller.key_id, self._app, (scope, receive, guarded))

    def _check_site(self, scope: Scope, headers: Headers) -> None:
        host, local = headers.get("host", ""), (scope.get("server") or ("",))[0]
        if not may_ask(host, self._names, local):
            raise NotAllowedError(_OTHER_NAME)
        if scope["method"] not in _SAFE and from_elsewhere(
            host, headers.get("origin"), headers.get("sec-fetch-site"), self._origins
        ):
            raise NotAllowedError(_OTHER_SITE)

    async def _known(self, scope: Scope, headers: Headers) -> Known | None:
        """Who calls; None on an open path, for a caller that is not known. Raises: as `Callers.find`."""
        if is_public(scope["path"]):
            return None
        if scope["path"] == _METRICS and not _presents_key(headers):
            return None if self._callers.needs_key else self._callers.without_key()
        given = Presented(
            authorization=headers.get("authorization", ""),
            api_key=headers.get("x-api-key", ""),
            cookie=cookie_parser(headers.get("cookie", "")).get(cookie_name(headers), ""),
            csrf=headers.get("x-csrf-token", ""),
            changes=scope["method"] not in _SAFE,
            same_origin=headers.get("sec-fetch-site") == "same-origin",
        )
        try:
            if not (given.authorization or given.api_key or given.cookie):
                return self._callers.without_key()
            return await anyio.to_thread.run_sync(self._callers.find, given, limiter=self._limit)
        except RamifyError:
            if scope["path"] in _OPEN:
                return None
            raise


def is_public(path: str) -> bool:
    """Whether a path is open without asking who it is."""
    return path in _PUBLIC or path.startswith(_PUBLIC_BELOW)


def needs_no_redis(scope: Scope) -> bool:
    """Whether a request is answered without Redis: public paths; metrics without a key, which tell that it is away."""
    return is_public(scope["path"]) or (scope["path"] == _METRICS and not _presents_key(Headers(scope=scope)))


def _presents_key(headers: Headers) -> bool:
    given = headers.get("authorization", "") + headers.get("x-api-key", "") + headers.get("cookie", "")
    return KEY_PREFIX in given or cookie_name(headers) in given


def cookie_name(headers: Headers) -> str:
    """Of the cookie of a login: beyond loopback browsers take it over TLS only, for this one host."""
    return "ramify_login" if is_loopback(headers.get("host", "")) else "__Host-ramify_login"


def _refusal(error: RamifyError, scope: Scope, headers: Headers) -> Response:
    """A problem, in OpenAI's form where its clients ask; a browser that asks for a page is led to the login."""
    if scope["path"].startswith(openai_errors.PATHS):
        return openai_errors.response_to(error)
    if isinstance(error, UnknownCallerError) and asks_for_page(scope["path"], headers):
        query = scope.get("query_string", b"").decode("ascii", "replace")
        here = scope["path"] + (f"?{query}" if query else "")
        return RedirectResponse(f"/login?next={quote(here if scope['method'] == 'GET' else '/')}", 303)
    return respond_to(error)


class KeyWatch:
    """Ends the answers of a key that is revoked, or expires, while they are still sent: event streams, long lists."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._tasks = defaultdict[str, set[asyncio.Task[None]]](set)
        self._revoked = set[asyncio.Task[None]]()
        self._looking: asyncio.Task[None] | None = None

    async def run(self, key_id: str, app: ASGIApp, request: tuple[Scope, Receive, Send]) -> None:
        """Let `app` answer a request, as long as the key holds."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is answered in a task")
        self._tasks[key_id].add(task)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        scope, receive, send = request
        reply = _Reply(send)
        try:
            await app(scope, receive, reply.send)
        except asyncio.CancelledError:
            if task not in self._revoked:
                raise
            task.uncancel()
            await reply.end()
        finally:
            self._revoked.discard(task)
            self._tasks[key_id].discard(task)
            if not self._tasks[key_id]:
                del self._tasks[key_id]

    async def _look(self) -> None:
        while self._tasks:
            await asyncio.sleep(_LOOK_S)
            if keys := self._still_open():
                await self._end(keys)

    def _still_open(self) -> Collection[str]:
        return list(self._tasks)

    async def _end(self, keys: Collection[str]) -> None:
        try:
            revoked = await anyio.to_thread.run_sync(self._callers.revoked, keys)
        except NotRunningError:
            return  # nobody can revoke a key meanwhile
        for task in [task for key_id in revoked for task in self._tasks.get(key_id, ())]:
            self._revoked.add(task)
            task.cancel()


class _Reply:
    """What has been sent of a reply, so that it can be ended early."""

    def __init__(self, send: Send) -> None:
        self._send, self._open = send, False

    async def send(self, message: Message) -> None:
        """Pass a part on."""
        if message["type"] == "http.response.start":
            self._open = "content-length" not in Headers(raw=message["headers"])
        elif not message.get("more_body"):
            self._open = False
        await self._send(message)

    async def end(self) -> None:
        """End a reply of no stated length; of another one the connection is closed."""
        if self._open:
            await self._send({"type": "http.response.body", "body": b""})
