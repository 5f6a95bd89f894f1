"""`python -P -m orchestrator.monitor APP [Flower's options]`: Flower behind a login, for its own names alone.

Flower's own command lets everybody read /metrics, takes any Host header (a web page can rebind its name to 127.0.0.1)
and runs a flowerconfig.py of the working folder.
"""

from __future__ import annotations

import binascii
import hmac
import os
import sys
from base64 import b64decode
from collections.abc import Collection
from typing import Any

from flower import command
from flower.app import Flower
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import OutputTransform, RequestHandler

from orchestrator import flower_state
from orchestrator.access.guesses import WINDOW_S, Guesses
from orchestrator.access.hosts import may_ask, own_names
from shared.tasks import celery_command
from shared.tasks.app import settings_of

#: The one page without a login: `ramify doctor` and health checks of containers ask for it. It says "OK".
_HEALTH = "/healthcheck"
_NO_LOGIN = "Flower starts with a login only: set flower.basic_auth, or FLOWER_BASIC_AUTH, to user:password."
_DENIED = "Access denied.\n"
_TOO_MANY = "Too many wrong logins from this address: try again in a minute.\n"
#: On every reply: shown in no frame of another page, read as nothing but what it says, kept by no browser or proxy.
_HEADERS = {
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_OTHER_HOST = "This Flower does not answer to that name: the setting flower.hosts lists the names that it has.\n"


class RefusalHandler(RequestHandler):
    """Answers with a status and a sentence, whatever was asked for."""

    def initialize(self, status: int, sentence: str) -> None:
        """Tornado's own constructor calls it."""
        self._status, self._sentence = status, sentence

    def check_xsrf_cookie(self) -> None:
        """Nothing is done, so nothing can be forged."""

    def prepare(self) -> None:
        """Ends the request before any method is looked for."""
        self.set_status(self._status)
        self.set_header("Content-Type", "text/plain")
        if self._status == 401:
            self.set_header("WWW-Authenticate", 'Basic realm="Ramify"')
        if self._status == 429:
            self.set_header("Retry-After", int(WINDOW_S))
        self.finish(self._sentence)


class GuardedReply(OutputTransform):
    """Puts the headers above on whatever is replied, static files and errors too."""

    def transform_first_chunk(
        self,
        status_code: int,
        headers: HTTPHeaders,
        chunk: bytes,
        finishing: bool,  # noqa: ARG002 - Tornado's
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Tornado calls it once a reply."""
        for name, value in _HEADERS.items():
            headers[name] = value
        return status_code, headers, chunk


class GuardedFlower(Flower):  # type: ignore[misc]  # Flower has no types
    """Flower, with both checks before any of its pages is looked for."""

    def __init__(self, options: Any = None, capp: Any = None, **kwargs: Any) -> None:
        """Raises: SystemExit without a login."""
        if not options.basic_auth:
            sys.exit(_NO_LOGIN)
        super().__init__(options=options, capp=capp, **kwargs)
        self.transforms.append(GuardedReply)
        own = settings_of(capp).flower
        self._names, self._guesses = own_names(own.host, own.hosts), Guesses()

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """Called once for every request, static files and upgrades included."""
        if status := self._refusal(request):
            sentence = {401: _DENIED, 403: _OTHER_HOST, 429: _TOO_MANY}[status]
            return self.get_handler_delegate(request, RefusalHandler, {"status": status, "sentence": sentence})
        return super().find_handler(request, **kwargs)

    def _refusal(self, request: HTTPServerRequest) -> int:
        """The status of a request that Flower does not see; 0 for one that it does."""
        if not may_ask(request.host, self._names):
            return 403
        if request.path == _HEALTH:
            return 0
        address, given = str(request.remote_ip or ""), request.headers.get("Authorization", "")
        if given and self._guesses.too_many(address):
            return 429  # whatever is given: else guessing would go on
        if logged_in(given, self.options.basic_auth):
            return 0
        if given:
            self._guesses.note(address)
        return 401


def logged_in(header: str, logins: Collection[str]) -> bool:
    """True for an Authorization header with one of the logins (`user:password`); takes as long for any wrong one."""
    scheme, _, encoded = header.partition(" ")
    try:
        given = b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return False
    found = [hmac.compare_digest(given, login.encode()) for login in logins]
    return scheme.lower() == "basic" and any(found)


def main(argv: list[str]) -> None:
    """Run Flower's command of `celery -A APP`, with the class above in place of its own."""
    command.Flower = GuardedFlower
    flower_state.install()
    sys.argv = [sys.argv[0], "-A", argv[0], "flower", f"--conf={os.devnull}", *argv[1:]]
    celery_command.run()


if __name__ == "__main__":
    main(sys.argv[1:])
