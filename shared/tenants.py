"""Tenants: the name of one, and which is meant where nobody names one. Who may bear it is not decided here."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from shared.errors import InputError
from shared.models.request import Name

#: Whose documents those are that nobody named a tenant for, those of before there were tenants among them.
DEFAULT_TENANT = "default"
_NAME: TypeAdapter[str] = TypeAdapter(Name)


def tenant_name(given: object) -> str:
    """`given` as a tenant's name. Case and width count: names that only look alike are two tenants.

    Raises: InputError when it is none; an empty one never means "all".
    """
    return checked_name("tenant", given)


def checked_name(field: str, given: object) -> str:
    """A name that may stand in keys and filters. Raises: InputError naming `field`."""
    try:
        return _NAME.validate_python(given, strict=True)
    except ValidationError:
        fix = "use 1 to 64 letters, digits, dots, dashes and underscores"
        raise InputError(field, given, fix) from None
