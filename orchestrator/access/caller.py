"""A caller over a network: whose it is, what it may, and whether it is on this machine. Proves nothing by itself."""

from __future__ import annotations

from enum import StrEnum

from orchestrator.client import Ramify
from shared.errors import NotAllowedError
from shared.models.base import Model
from shared.models.request import TenantName
from shared.tenants import DEFAULT_TENANT


class Scope(StrEnum):
    """What a caller may: read what there is, ask questions, change documents, operate the machine for all tenants."""

    READ = "read"
    ASK = "ask"
    WRITE = "write"
    ADMIN = "admin"


class Caller(Model):
    """One caller. `remote`: it is on another machine, or has a key. `key_id`: of the key that it showed.

    `open_jobs`: how many jobs and batches that key may have open; None: any number.
    """

    tenant: TenantName = DEFAULT_TENANT
    scopes: frozenset[Scope] = frozenset(Scope)
    remote: bool = False
    key_id: str | None = None
    open_jobs: int | None = None

    def check(self, scope: Scope) -> None:
        """Raises: NotAllowedError without that scope."""
        if scope not in self.scopes:
            raise NotAllowedError(f"this key may not do that: it needs one with the scope {scope}")

    def client(self, client: Ramify, scope: Scope = Scope.READ) -> Ramify:
        """`client` bound to the caller's tenant; for what operators do, one of all tenants."""
        return client.for_tenant(None if scope is Scope.ADMIN else self.tenant, self.key_id, self.open_jobs)


#: Whoever calls from this machine, where no keys are asked for.
LOCAL = Caller()
