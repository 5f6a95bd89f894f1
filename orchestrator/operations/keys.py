"""API keys. They are made on the machine itself: no caller over a network makes one for others or for itself."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from orchestrator.access.caller import Scope
from orchestrator.access.keys import ApiKey, KeyStore
from orchestrator.client import Ramify
from orchestrator.operations.operation import HttpRoute, Operation
from shared.jobs import reachable
from shared.models.base import Model
from shared.models.request import TenantName
from shared.tenants import DEFAULT_TENANT


class NewKeyInput(Model):
    """What a new key is to have; None: as `keys.requests_per_minute` and `keys.open_jobs` say."""

    tenant: TenantName = Field(default=DEFAULT_TENANT, description="whose documents and jobs it opens")
    scopes: tuple[str, ...] = Field(default=(Scope.READ, Scope.ASK), description="read, ask, write, admin")
    name: str = Field(default="", description="for people")
    requests_per_minute: int | None = Field(default=None, description="requests a minute")
    open_jobs: int | None = Field(default=None, description="open jobs and batches")
    days: float | None = Field(default=None, description="days until it expires")


class KeyShown(ApiKey):
    """A new key. `secret` is all of it, told this once."""

    secret: str


class KeysInput(Model):
    """Whose keys; None: everybody's."""

    tenant: TenantName | None = None


class KeyList(Model):
    """Keys, the newest first, without their secrets."""

    keys: tuple[ApiKey, ...]


class KeyId(Model):
    """One key."""

    id: Annotated[str, Field(min_length=1, max_length=100, description="the part between the underscores")]


def _create(client: Ramify, given: NewKeyInput) -> KeyShown:
    with reachable(client.settings):
        made = KeyStore(client.redis, client.settings).create(**dict(given))
    return KeyShown(**dict(made.key), secret=made.secret.get_secret_value())


def _list(client: Ramify, given: KeysInput) -> KeyList:
    with reachable(client.settings):
        return KeyList(keys=tuple(KeyStore(client.redis, client.settings).list(given.tenant)))


def _revoke(client: Ramify, given: KeyId) -> ApiKey:
    with reachable(client.settings):
        return KeyStore(client.redis, client.settings).revoke(given.id)


CREATE = Operation(
    "keys_create", NewKeyInput, KeyShown, _create, Scope.ADMIN, command="keys create", idempotent=False, local_only=True
)
LIST = Operation(
    "keys_list", KeysInput, KeyList, _list, Scope.ADMIN, command="keys list", routes=(HttpRoute("GET", "/v1/keys"),)
)
REVOKE = Operation(
    "keys_revoke", KeyId, ApiKey, _revoke, Scope.ADMIN, command="keys revoke",
    routes=(HttpRoute("DELETE", "/v1/keys/{id}"),),
)  # fmt: skip
OPERATIONS: tuple[Operation[Any], ...] = (CREATE, LIST, REVOKE)
