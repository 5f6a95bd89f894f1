"""What a scan looks for, in one line for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.planning.lists.definitions import told_conditions
from orchestrator.planning.lists.field_told import field_part
from shared.models import Filters
from shared.models.enumeration import Choice, Condition, Scan

_WAYS = {"most": "highest", "least": "lowest", "newest": "latest", "oldest": "earliest"}


def understood(scan: Scan) -> str:
    """What a scan looks for, in one line: `kind = decision, tag = redis, containing "cache"`.

    The caller's own filters are in it; empty when every document belongs to the list.
    """
    return ", ".join(dict.fromkeys(parts_of(scan)))


def parts_of(scan: Scan) -> Iterator[str]:
    """The conditions of a scan, each for people."""
    if scan.code:
        yield from told_conditions(scan.code)
    for filters in (scan.filters, scan.found):
        yield from _filters(filters)
    if scan.dates:
        yield " or ".join(map(dated, scan.dates))
    for group in scan.tags:
        yield f"tag = {' or '.join(group)}"
    yield from map(field_part, scan.fields)
    yield from map(_choice, scan.choices)
    yield from ["no other tag"] if scan.only_tags else []
    if scan.facets:
        yield f"facet = {' or '.join(scan.facets)}"
    for name, values in (("tag", scan.without_tags), ("kind", scan.without_kinds), ("path", scan.without_paths)):
        if values:
            yield f"not {name} = {' or '.join(values)}"
    yield from (f"not {dated(span)}" for span in scan.without_dates)
    yield from (f"no {name}" for name in scan.lacking)
    for condition in scan.conditions:
        yield _condition(condition)
    yield from _order(scan)
    if scan.per:
        most = {"most": ", the most frequent first", "least": ", the least frequent first"}
        yield f"per {scan.per.label}{'' if scan.by else most.get(scan.order, '')}"


def _order(scan: Scan) -> Iterator[str]:
    if scan.by and scan.total:
        yield f"{'average' if scan.total == 'mean' else 'sum'} of {scan.by.label}"
    elif scan.by:
        way = _WAYS.get(scan.order, "lowest")
        yield f"the {scan.limit} with the {way} {scan.by.label}" if scan.limit else f"{way} {scan.by.label} first"
    elif scan.order in ("most", "least"):
        return
    elif scan.order:
        yield f"the {scan.limit} {scan.order}" if scan.limit else f"{scan.order} first"


def _filters(filters: Filters) -> Iterator[str]:
    for name, values in (("kind", filters.kinds), ("tag", filters.tags), ("path", filters.paths)):
        if values:
            yield f"{name} = {' or '.join(values)}"
    if filters.after or filters.before:
        yield dated(filters)


def dated(span: Filters) -> str:
    """A span of days as people read it."""
    if span.after and span.before:
        return f"dated {span.after} to {span.before}"
    return f"dated {span.after} or later" if span.after else f"dated {span.before} or earlier"


def _choice(choice: Choice) -> str:
    """Conditions of which some are enough, as people read them."""
    parts = [*map(field_part, choice.fields), *(f"tag = {tag}" for tag in choice.tags)]
    return " or ".join(parts) if choice.least == 1 else f"at least {choice.least} of ({', '.join(parts)})"


def _condition(condition: Condition) -> str:
    words = " or ".join(f'"{word}"' for word in condition.words)
    if condition.negated:
        return f"without {words}"
    return f"containing or tagged {words}" if condition.tagged else f"containing {words}"
