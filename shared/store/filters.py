"""Neutral Qdrant filters (qdrant_client.models) for what a caller may ask and what an ingest must find. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qdrant_client import models

from shared.encoders.base import SparseVector
from shared.models import Filters


def to_filter(filters: Filters) -> models.Filter:
    """The filter of every arm and every leaf.

    The namespace must match. Dates are inclusive; chunks without a date are left out once a date is asked for.
    One of `tags`, one of `kinds` and one of the `paths` prefixes must match; prefixes are taken literally, so end
    a folder with "/".
    """
    must: list[models.Condition] = [equals("namespace", filters.namespace)]
    if filters.after or filters.before:
        first = filters.after.toordinal() if filters.after else None
        last = filters.before.toordinal() if filters.before else None
        must.append(models.FieldCondition(key="day", range=models.Range(gte=first, lte=last)))
    if filters.tags:
        must.append(one_of("tags", filters.tags))
    if filters.kinds:
        must.append(one_of("kind", filters.kinds))
    if filters.paths:
        prefixes = [models.FieldCondition(key="path", match=models.MatchPrefix(prefix=path)) for path in filters.paths]
        must.append(models.Filter(should=list(prefixes)))
    return models.Filter(must=must)


def equals(field: str, value: str | int) -> models.FieldCondition:
    """Chunks with this value in a payload field."""
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def one_of(field: str, values: Iterable[str]) -> models.FieldCondition:
    """Chunks with at least one of these values in a payload field."""
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


def to_sparse(vector: SparseVector) -> models.SparseVector:
    """An encoder's vector as Qdrant takes it, in queries and in points."""
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def of_documents(doc_ids: Sequence[str]) -> models.Filter:
    """All chunks of these documents."""
    return models.Filter(must=[one_of("doc_id", doc_ids)])


def of_source(source: str) -> models.Filter:
    """All chunks ingested from `source`."""
    return models.Filter(must=[equals("source", source)])


def of_chunks(chunk_ids: Sequence[str]) -> models.Filter:
    """These chunks, as far as they are stored."""
    return models.Filter(must=[models.HasIdCondition(has_id=list(chunk_ids))])


def stale_chunks(doc_id: str, keep: Sequence[str]) -> models.Filter:
    """The chunks of a document except those in `keep`."""
    kept: list[models.Condition] = [models.HasIdCondition(has_id=list(keep))] if keep else []
    return models.Filter(must=[equals("doc_id", doc_id)], must_not=kept or None)


def without(field: str) -> models.IsEmptyCondition:
    """Chunks that do not have a payload field."""
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))


def all_of(*conditions: models.Condition) -> models.Filter:
    """Chunks that meet every condition."""
    return models.Filter(must=list(conditions))
