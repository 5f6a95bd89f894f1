"""Logins of the page: made from an API key, kept in Redis, named by a cookie. The key itself is in no cookie."""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

from pydantic import SecretStr
from redis import Redis

from orchestrator.access.keys import AccessKeys
from shared.jobs.codec import text
from shared.settings import Settings

_COOKIE_BYTES = 32


class Login(NamedTuple):
    """Whose key a cookie stands for, and the token that forms and scripts of the page send with changes."""

    key_id: str
    csrf: str


class Logins:
    """Makes, finds and ends logins. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self.lasts_s = client, int(settings.keys.login_s)

    def make(self, key_id: str) -> SecretStr:
        """A new login of a key that was checked; returns the value of its cookie."""
        cookie = secrets.token_urlsafe(_COOKIE_BYTES)
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hset(_key(cookie), mapping={"key_id": key_id, "csrf": secrets.token_urlsafe(_COOKIE_BYTES)})
            pipe.expire(_key(cookie), self.lasts_s)
            pipe.execute()
        return SecretStr(cookie)

    def find(self, cookie: str) -> Login | None:
        """The login of a cookie; None when there is none (any more)."""
        key_id, csrf = self._client.hmget(_key(cookie), ["key_id", "csrf"])
        return Login(text(key_id), text(csrf)) if key_id is not None and csrf is not None else None

    def end(self, cookie: str) -> None:
        """Log out."""
        self._client.delete(_key(cookie))


def _key(cookie: str) -> str:
    """Redis holds a digest, from which nobody makes a cookie."""
    return AccessKeys.login + hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
