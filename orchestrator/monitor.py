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
from tornado.httputil import HTTPServerRequest
from tornado.web import RequestHandler

from shared.settings import Settings
from shared.settings.sections import LOOPBACK
from shared.tasks import celery_command
from shared.tasks.app import settings_of

#: The one page without a login: `ramify doctor` and health checks of containers ask for it. It says "OK".
_HEALTH = "/healthcheck"
_NO_LOGIN = "Flower starts with a login only: set flower.basic_auth, or FLOWER_BASIC_AUTH, to user:password."
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
        self.finish(self._sentence)


class GuardedFlower(Flower):  # type: ignore[misc]  # Flower has no types
    """Flower, with both checks before any of its pages is looked for."""

    def __init__(self, options: Any = None, capp: Any = None, **kwargs: Any) -> None:
        """Raises: SystemExit without a login."""
        if not options.basic_auth:
            sys.exit(_NO_LOGIN)
        super().__init__(options=options, capp=capp, **kwargs)
        self._names = own_names(settings_of(capp))

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """Called once for every request, static files and upgrades included."""
        if not may_ask(request.host, self._names):
            return self.get_handler_delegate(request, RefusalHandler, {"status": 403, "sentence": _OTHER_HOST})
        if request.path != _HEALTH and not logged_in(request.headers.get("Authorization", ""), self.options.basic_auth):
            return self.get_handler_delegate(request, RefusalHandler, {"status": 401, "sentence": "Access denied.\n"})
        return super().find_handler(request, **kwargs)


def own_names(settings: Settings) -> frozenset[str]:
    """The names that requests may be for: loopback's, the address that it listens on, and those of the settings."""
    flower = settings.flower
    own = {flower.host.lower()} - {"0.0.0.0", "::"}  # noqa: S104 - not names of this machine alone
    return frozenset({*LOOPBACK, *own, *map(str.lower, flower.hosts)})


def may_ask(host: str, names: Collection[str]) -> bool:
    """True for a Host header with one of these names, whatever its port."""
    name, _, port = host.lower().rpartition(":")
    if not name or not port.isascii() or not port.isdigit():
        name = host.lower()
    return name.removeprefix("[").removesuffix("]") in names


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
    sys.argv = [sys.argv[0], "-A", argv[0], "flower", f"--conf={os.devnull}", *argv[1:]]
    celery_command.run()


if __name__ == "__main__":
    main(sys.argv[1:])
