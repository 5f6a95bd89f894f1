"""A caller over a network: whose it is, what it may, and whether it is on this machine. Proves nothing by itself."""

from __future__ import annotations

from enum import StrEnum

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
    """One caller. `remote`: it is on another machine, or has a key. `key_id`: of the key that it showed."""

    tenant: TenantName = DEFAULT_TENANT
    scopes: frozenset[Scope] = frozenset(Scope)
    remote: bool = False
    key_id: str | None = None

    def check(self, scope: Scope) -> None:
        """Raises: NotAllowedError without that scope."""
        if scope not in self.scopes:
            raise NotAllowedError(f"this key may not do that: it needs one with the scope {scope}")


#: Whoever calls from this machine, where no keys are asked for.
LOCAL = Caller()
