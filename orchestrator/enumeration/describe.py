"""Says in one line what a scan looks for: `kind = decision, tag = redis, containing "cache"`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.models import Filters
from shared.models.enumeration import Condition, Scan


def understood(scan: Scan) -> str:
    """Everything that must hold, the caller's own filters included; empty when every document belongs to the list."""
    return ", ".join(dict.fromkeys(_parts(scan)))


def _parts(scan: Scan) -> Iterator[str]:
    for filters in (scan.filters, scan.found):
        yield from _filters(filters)
    for group in scan.tags:
        yield f"tag = {_either(group)}"
    if scan.facets:
        yield f"facet = {_either(scan.facets)}"
    for name, values in (("tag", scan.without_tags), ("kind", scan.without_kinds), ("path", scan.without_paths)):
        if values:
            yield f"not {name} = {_either(values)}"
    for condition in scan.conditions:
        yield _condition(condition)


def _filters(filters: Filters) -> Iterator[str]:
    if filters.kinds:
        yield f"kind = {_either(filters.kinds)}"
    if filters.tags:
        yield f"tag = {_either(filters.tags)}"
    if filters.paths:
        yield f"path = {_either(filters.paths)}"
    if filters.after and filters.before:
        yield f"dated {filters.after} to {filters.before}"
    elif filters.after:
        yield f"dated {filters.after} or later"
    elif filters.before:
        yield f"dated {filters.before} or earlier"


def _condition(condition: Condition) -> str:
    words = _either([f'"{word}"' for word in condition.words])
    if condition.negated:
        return f"without {words}"
    return f"containing or tagged {words}" if condition.tagged else f"containing {words}"


def _either(values: Sequence[str]) -> str:
    return " or ".join(values)
