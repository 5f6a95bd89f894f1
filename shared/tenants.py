"""Names of tenants, and the default one. Does not decide who may use which."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from shared.errors import InputError
from shared.models.request import Name, TenantName

#: The tenant of everything that names none, such as documents from before there were tenants.
DEFAULT_TENANT = "default"
_NAME: TypeAdapter[str] = TypeAdapter(Name)
_TENANT: TypeAdapter[str] = TypeAdapter(TenantName)


def tenant_name(given: object) -> str:
    """`given` as a tenant's name; case counts.

    Raises: InputError when it is none; an empty one never means "all".
    """
    return checked_name("tenant", given)


def bound_tenant(bound: str | None, given: object = None) -> str:
    """The tenant of what is asked for: the one that it names, else the one that it is bound to, else the default.

    Raises: InputError when it names another tenant than `bound` (None: any may be named).
    """
    if given is None:
        return bound or DEFAULT_TENANT
    if bound is not None and given != bound:
        raise InputError("tenant", given, f"only the tenant {bound} may be named here: name that one or none")
    return tenant_name(given)


def checked_name(field: str, given: object) -> str:
    """A name that may stand in keys and filters, of the field "tenant" in ASCII. Raises: InputError naming `field`."""
    letters = "ASCII letters" if field == "tenant" else "letters"
    try:
        return (_TENANT if field == "tenant" else _NAME).validate_python(given, strict=True)
    except ValidationError:
        fix = f"use 1 to 64 {letters}, digits, dots, dashes and underscores"
        if field == "tenant" and isinstance(given, str):  # what looks like ASCII and is none is shown by code points
            given = given.encode("ascii", "backslashreplace").decode()
        raise InputError(field, given, fix) from None
