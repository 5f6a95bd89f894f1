"""Finds who calls, by the key or the cookie that a request brings. Knows no route and no framework."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from typing import NamedTuple

from pydantic import SecretStr
from redis import Redis

from orchestrator.access.caller import LOCAL, Caller
from orchestrator.access.hosts import is_loopback
from orchestrator.access.keys import KEY_PREFIX, ApiKey, KeyStore
from orchestrator.access.logins import Logins
from shared.connections.connect import reachable
from shared.errors import NotAllowedError, SettingsError, UnknownCallerError
from shared.settings import Settings

_NO_KEY = "this needs an API key: send it as `Authorization: Bearer rmf_...`; `ramify keys create` makes one"


class Presented(NamedTuple):
    """What a request brings to say who it is from.

    `authorization`, `api_key`, `csrf`: headers; `cookie`: of a login. `changes`: it may change something.
    `same_origin`: the browser says that a page of this server has sent it.
    """

    authorization: str = ""
    api_key: str = ""
    cookie: str = ""
    csrf: str = ""
    changes: bool = False
    same_origin: bool = False


class Known(NamedTuple):
    """A caller; `csrf`: the token of its login, if it came by one."""

    caller: Caller
    csrf: str = ""


class Callers:
    """Every method raises NotRunningError when Redis does not answer."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._settings = settings
        self.keys, self.logins = KeyStore(client, settings), Logins(client, settings)
        self._why = why_keys(settings)
        self.needs_key = self._why is not None

    def find(self, given: Presented) -> Known:
        """Who calls. Raises: UnknownCallerError, NotAllowedError, TooManyRequestsError."""
        with reachable(self._settings):
            if presented := self._presented_key(given):
                return Known(_caller(self.keys.use(presented)))
            if given.cookie and (login := self.logins.find(given.cookie)):
                if given.changes and not given.same_origin and not _same(given.csrf, login.csrf):
                    raise NotAllowedError("a change needs the header X-CSRF-Token beside the cookie of a login")
                return Known(_caller(self.keys.use_by_login(login.key_id)), login.csrf)
        return self.without_key()

    def without_key(self) -> Known:
        """Who calls with nothing in hand. Raises: UnknownCallerError where a key is needed."""
        if self.needs_key:
            raise UnknownCallerError(_NO_KEY)
        return Known(LOCAL)

    def _presented_key(self, given: Presented) -> SecretStr | None:
        """Where no key is needed, others than ours are passed over: some clients cannot be used without any."""
        scheme, _, token = given.authorization.partition(" ")
        presented = token.strip() if scheme.lower() == "bearer" else given.api_key
        return SecretStr(presented) if presented and (self.needs_key or presented.startswith(KEY_PREFIX)) else None

    def log_in(self, key: SecretStr) -> SecretStr:
        """The cookie of a new login. Raises: UnknownCallerError, TooManyRequestsError."""
        with reachable(self._settings):
            return self.logins.make(self.keys.use(key).id)

    def log_out(self, cookie: str) -> None:
        """End a login."""
        with reachable(self._settings):
            self.logins.end(cookie)

    def revoked(self, key_ids: Collection[str]) -> list[str]:
        """Those of these keys that were revoked or have expired."""
        with reachable(self._settings):
            return [key_id for key_id in key_ids if not self.keys.still_holds(key_id)]

    def check_start(self) -> None:
        """Raises: SettingsError where callers need a key and there is none."""
        with reachable(self._settings):
            if self._why and not self.keys.any_active():
                fix = "there is no API key yet: make one with `ramify keys create`, or serve this machine alone"
                raise SettingsError(*self._why, fix)


def why_keys(settings: Settings) -> tuple[str, object] | None:
    """The setting for which callers need a key, and its value; None where the server is for this machine alone."""
    server = settings.server
    if not is_loopback(server.host):
        return "server.host", server.host
    if not all(map(is_loopback, server.hosts)):
        return "server.hosts", list(server.hosts)
    return ("keys.required", True) if settings.keys.required else None


def _same(given: str, kept: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), kept.encode())


def _caller(key: ApiKey) -> Caller:
    return Caller(tenant=key.tenant, scopes=frozenset(key.scopes), remote=True, key_id=key.id, open_jobs=key.open_jobs)
