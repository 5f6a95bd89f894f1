"""API keys: `rmf_<id>_<secret>`. Redis holds a digest of the secret alone; nothing keeps a key in memory.

Each request asks Redis, in one round trip, so a key that is revoked or expires is refused from then on, and its rate
holds for all server processes together.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field, SecretStr
from redis import Redis

from orchestrator.access.caller import Scope
from orchestrator.permits import PERMITS
from shared.connections.clock import ServerClock
from shared.connections.key_types import declare
from shared.errors import InputError, NotFoundError, RamifyError, TooManyRequestsError, UnknownCallerError
from shared.jobs.codec import text
from shared.jobs.keys import PREFIX
from shared.jobs.scripts import Scripts
from shared.models.base import Model
from shared.settings import Settings
from shared.tenants import tenant_name

KEY_PREFIX = "rmf_"
_SHAPE = re.compile(r"rmf_([0-9a-f]{16})_([0-9a-f]{64})")
_ID = re.compile(r"[0-9a-f]{16}")
_ID_BYTES, _SECRET_BYTES = 8, 32
#: Compared with where there is no such key, so that it takes as long.
_NOBODYS = "0" * 64
#: Seconds between two notes of when a key was used.
_NOTE_S = 60
#: Seconds for which a key that is revoked or has expired is still listed.
_SHOWN_S = 30 * 86_400
_MOST_KEYS, _MOST_DAYS = 10_000, 3660
_MAX_NAME = 100


class AccessKeys:
    """The Redis keys of API keys."""

    index = f"{PREFIX}:keys"  # sorted set: key id -> when it was made
    key = f"{PREFIX}:key:"  # + key id: hash: digest of the secret, tenant, scopes, limits, times, name
    rate = f"{PREFIX}:key_rate:"  # + key id: when the next request would come at the key's steady rate (ms)
    permits = PERMITS  # + key id: see there
    login = f"{PREFIX}:login:"  # + digest of a cookie: hash: key id and CSRF token of a login of the page


declare(
    {
        AccessKeys.index: "zset", f"{AccessKeys.key}*": "hash", f"{AccessKeys.rate}*": "string",
        f"{AccessKeys.login}*": "hash",
    }
)  # fmt: skip


class ApiKey(Model):
    """A key as it is listed, without its secret. Times are Unix seconds."""

    id: str
    name: str = ""
    tenant: str
    scopes: tuple[Scope, ...]
    requests_per_minute: int = Field(ge=1)
    open_jobs: int = Field(ge=1)
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    used_at: float | None = None


class NewKey(NamedTuple):
    """A key that was made now. `secret` is the whole key, which is told once."""

    key: ApiKey
    secret: SecretStr


class KeyStore:
    """Makes, lists, revokes and checks keys. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._settings = client, settings
        self._run = Scripts(client, __package__ or "")
        self._clock = ServerClock(client)

    def create(  # noqa: PLR0913 - what a key has
        self,
        tenant: str,
        scopes: Sequence[str] = (Scope.READ, Scope.ASK),
        *,
        name: str = "",
        requests_per_minute: int | None = None,
        open_jobs: int | None = None,
        days: float | None = None,
    ) -> NewKey:
        """A new key. `days`: until it expires; None: never. Raises: InputError."""
        limits, now = self._settings.keys, self._clock.now()
        if days is not None and not 0 < days <= _MOST_DAYS:
            raise InputError("days", days, f"give a number above 0 and at most {_MOST_DAYS}, or none")
        if len(name) > _MAX_NAME or not name.isprintable():
            raise InputError("name", name, f"use at most {_MAX_NAME} printable characters")
        if self._client.zcard(AccessKeys.index) >= _MOST_KEYS:
            raise RamifyError(f"there are {_MOST_KEYS:,} keys already: revoke some with `ramify keys revoke ID`")
        key = ApiKey(
            id=secrets.token_hex(_ID_BYTES),
            name=name,
            tenant=tenant_name(tenant),
            scopes=_checked_scopes(scopes),
            requests_per_minute=_bounded("requests_per_minute", requests_per_minute, limits.requests_per_minute),
            open_jobs=_bounded("open_jobs", open_jobs, limits.open_jobs),
            created_at=round(now, 3),
            expires_at=None if days is None else round(now + days * 86_400, 3),
        )
        secret = secrets.token_hex(_SECRET_BYTES)
        self._put(key, secret)
        return NewKey(key, SecretStr(f"{KEY_PREFIX}{key.id}_{secret}"))

    def _put(self, key: ApiKey, secret: str) -> None:
        fields: dict[Any, Any] = key.model_dump(mode="json", exclude_none=True) | {"scopes": ",".join(key.scopes)}
        name = AccessKeys.key + key.id
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hset(name, mapping={**fields, "digest": _digest(secret)})
            if key.expires_at is not None:
                pipe.expireat(name, int(key.expires_at) + _SHOWN_S)
            pipe.zadd(AccessKeys.index, {key.id: key.created_at})
            pipe.execute()

    def list(self, tenant: str | None = None) -> list[ApiKey]:
        """The keys of a tenant, or all, the newest first; those that were revoked or have expired for a month more."""
        ids = [text(key_id) for key_id in self._client.zrevrange(AccessKeys.index, 0, -1)]
        with self._client.pipeline(transaction=False) as pipe:
            for key_id in ids:
                pipe.hgetall(AccessKeys.key + key_id)
            rows: Any = pipe.execute()
        if gone := [key_id for key_id, row in zip(ids, rows, strict=True) if not row]:
            self._client.zrem(AccessKeys.index, *gone)
        found = [_read(_pairs(row)) for row in rows if row]
        return [key for key in found if tenant in {None, key.tenant}]

    def revoke(self, key_id: str, tenant: str | None = None) -> ApiKey:
        """Refuse a key from now on. Raises: NotFoundError, also for a key of another tenant than `tenant`, if named."""
        name = AccessKeys.key + key_id
        found = _pairs(self._client.hgetall(name)) if _ID.fullmatch(key_id) else {}
        if not found or tenant not in {None, found["tenant"]}:
            raise NotFoundError("key id", key_id, "there is no such key; `ramify keys list` shows them")
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hsetnx(name, "revoked_at", f"{self._clock.now():.3f}")
            pipe.expire(name, _SHOWN_S)
            pipe.hgetall(name)
            *_, row = pipe.execute()
        return _read(_pairs(row))

    def any_active(self) -> bool:
        """True where some key would be let in."""
        now = self._clock.now()
        return any(key.revoked_at is None and (key.expires_at is None or key.expires_at > now) for key in self.list())

    def use(self, presented: SecretStr) -> ApiKey:
        """The key of a request that brings it. Raises: UnknownCallerError, TooManyRequestsError."""
        shape = _SHAPE.fullmatch(presented.get_secret_value())
        key_id, secret = (shape[1], shape[2]) if shape else ("", "")
        given = _digest(secret)
        verdict, wait_ms, stored, *fields = self._use(key_id, given)
        if not hmac.compare_digest(given, text(stored) or _NOBODYS) or not shape:
            verdict = "unknown"
        return self._admitted(text(verdict), float(wait_ms), fields)

    def use_by_login(self, key_id: str) -> ApiKey:
        """The key of a request with the cookie of a login. Raises: as `use`."""
        verdict, wait_ms, _, *fields = self._use(key_id, "", checked=True)
        return self._admitted(text(verdict), float(wait_ms), fields)

    def still_holds(self, key_id: str) -> bool:
        """Whether a key is neither revoked nor expired; for what goes on for long after its request was let in."""
        found = _pairs(self._client.hgetall(AccessKeys.key + key_id))
        expires = float(found.get("expires_at", "inf"))
        return bool(found) and "revoked_at" not in found and expires > self._clock.now()

    def _use(self, key_id: str, digest: str, *, checked: bool = False) -> Any:
        names = [AccessKeys.key + key_id, AccessKeys.rate + key_id]
        return self._run("use_key", names, [digest, int(checked), _NOTE_S])

    @staticmethod
    def _admitted(verdict: str, wait_ms: float, fields: Sequence[object]) -> ApiKey:
        if verdict == "taken":
            return _read(dict(zip(map(text, fields[::2]), map(text, fields[1::2]), strict=True)))
        if verdict == "limited":
            raise TooManyRequestsError("this key has made its requests of the minute: wait", wait_ms / 1000)
        reasons = {"revoked": "this key was revoked", "expired": "this key has expired"}
        raise UnknownCallerError(f"{reasons.get(verdict, 'there is no such key')}: send another one")


def _digest(secret: str) -> str:
    """Of 256 random bits a plain hash is as good as a slow one: nobody can try them all."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _pairs(row: Any) -> dict[str, str]:
    return {text(name): text(value) for name, value in row.items()}


def _read(found: dict[str, str]) -> ApiKey:
    fields: dict[str, Any] = {name: found[name] for name in ApiKey.model_fields if name in found}
    return ApiKey(**fields | {"scopes": tuple(Scope(one) for one in found["scopes"].split(","))})


def _checked_scopes(given: Sequence[str]) -> tuple[Scope, ...]:
    known = {scope.value for scope in Scope}
    if wrong := [one for one in given if one not in known] or ([""] if not given else []):
        raise InputError("scopes", wrong[0], f"choose from {', '.join(Scope)}")
    return tuple(scope for scope in Scope if scope in given)


def _bounded(field: str, given: int | None, otherwise: int) -> int:
    most = 1_000_000 if field == "requests_per_minute" else 10_000
    if given is not None and not 1 <= given <= most:
        raise InputError(field, given, f"give a whole number from 1 to {most:,}")
    return otherwise if given is None else given
