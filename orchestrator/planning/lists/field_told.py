"""How a filter by a field is told to people. Pure."""

from __future__ import annotations

from shared.models.enumeration import FieldFilter

#: Values of one field that are told; of more it is told how many there are.
_MOST_TOLD = 8
#: Of more days that are of a range it is told instead.
_MOST_DAYS = 2


def field_part(wanted: FieldFilter) -> str:
    """A filter as people read it: `owner = Ada`."""
    name = " or ".join(wanted.names)
    if not wanted.values:
        return f"{'no' if wanted.negated else 'any'} {name}"
    if wanted.told and len(wanted.values) > _MOST_DAYS:
        return f"{'not ' if wanted.negated else ''}{name} = {wanted.told}"
    values, more = wanted.values[:_MOST_TOLD], len(wanted.values) - _MOST_TOLD
    told = [*values, *([f"{more} more"] if more > 0 else [])]
    return f"{'not ' if wanted.negated else ''}{name} = {' or '.join(told)}"
