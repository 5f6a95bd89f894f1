"""The store's filter for a scan. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from qdrant_client import models

from shared.models import Filters
from shared.models.enumeration import Scan
from shared.store.filters import one_of, to_filter


def documents_under(filters: Filters) -> models.Filter:
    """The first chunk of every document under a caller's filter: one point a document."""
    return models.Filter(must=[to_filter(filters), _first(0, 0)])


def documents_of(scan: Scan) -> models.Filter:
    """The first chunk of every document that the scan's filters let in; what it must say is not tested here."""
    must: list[models.Condition] = [to_filter(scan.filters), to_filter(scan.found), _first(0, 0)]
    must += [one_of("tags", group) for group in scan.tags]
    out: list[models.Condition] = []
    out += [one_of("tags", scan.without_tags)] if scan.without_tags else []
    out += [one_of("kind", scan.without_kinds)] if scan.without_kinds else []
    out += [models.FieldCondition(key="path", match=models.MatchPrefix(prefix=path)) for path in scan.without_paths]
    return models.Filter(must=must, must_not=out or None)


def further_chunks(doc_ids: Sequence[str]) -> models.Filter:
    """The chunks of these documents behind their first ones."""
    return models.Filter(must=[one_of("doc_id", doc_ids), _first(1, None)])


def _first(least: int, most: int | None) -> models.FieldCondition:
    return models.FieldCondition(key="ordinal", range=models.Range(gte=least, lte=most))
