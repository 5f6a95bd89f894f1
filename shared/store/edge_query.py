"""Converts queries (qdrant_client.models) to Qdrant Edge's classes. What Edge cannot do is refused, not skipped."""

from __future__ import annotations

from typing import Any

import qdrant_edge as edge
from qdrant_client import models

from shared.errors import StoreError

#: Qdrant's own default where a request names no limit.
_DEFAULT_LIMIT = 10


def edge_query(request: models.QueryRequest) -> edge.QueryRequest:
    """One nearest-vector request, or, without a query, matching chunks by id; payloads are read apart from it.

    Raises: StoreError when the request asks for more than the embedded store can do.
    """
    if request.prefetch or request.lookup_from or request.shard_key:
        raise _unsupported("prefetch, lookup_from and shard_key")
    if request.query is not None and request.using is None:
        raise StoreError("the query names no vector: set `using`")
    query = None if request.query is None else edge.Query.Nearest(_vector(request.query), using=request.using)
    return edge.QueryRequest(
        limit=_DEFAULT_LIMIT if request.limit is None else request.limit,
        offset=request.offset,
        query=query,
        with_vector=request.with_vector or False,
        with_payload=False,
        filter=edge_filter(request.filter),
        score_threshold=request.score_threshold,
        params=_params(request.params),
    )


def edge_filter(flt: models.Filter | None) -> edge.Filter | None:
    """The same filter for Edge. Raises: StoreError on a condition that the embedded store does not know."""
    if flt is None:
        return None
    least = flt.min_should
    return edge.Filter(
        must=_conditions(flt.must),
        should=_conditions(flt.should),
        must_not=_conditions(flt.must_not),
        min_should=edge.MinShould(_conditions(least.conditions) or [], least.min_count) if least else None,
    )


def _vector(query: object) -> Any:
    if isinstance(query, models.NearestQuery) and query.mmr is None:
        query = query.nearest
    if isinstance(query, models.SparseVector):
        return edge.SparseVector(query.indices, query.values)
    if isinstance(query, list) and query and not isinstance(query[0], list):
        return query
    raise _unsupported(f"a query of type {type(query).__name__}")


def _params(params: models.SearchParams | None) -> edge.SearchParams | None:
    if params is None:
        return None
    if params.quantization or params.acorn:
        raise _unsupported("quantization and acorn parameters")
    idf = None
    if isinstance(params.idf, models.IdfCorpusParams):
        idf = edge.IdfParams(corpus=edge_filter(params.idf.corpus))
    return edge.SearchParams(
        hnsw_ef=params.hnsw_ef, exact=bool(params.exact), indexed_only=bool(params.indexed_only), idf=idf
    )


def _conditions(given: object) -> list[Any] | None:
    return None if given is None else [_condition(item) for item in (given if isinstance(given, list) else [given])]


def _condition(condition: object) -> Any:
    match condition:
        case models.Filter():
            return edge_filter(condition)
        case models.HasIdCondition(has_id=ids):
            return edge.HasIdCondition(set(ids))
        case models.HasVectorCondition(has_vector=name):
            return edge.HasVectorCondition(name)
        case models.IsEmptyCondition(is_empty=field):
            return edge.IsEmptyCondition(field.key)
        case models.IsNullCondition(is_null=field):
            return edge.IsNullCondition(field.key)
        case models.FieldCondition():
            if condition.geo_bounding_box or condition.geo_radius or condition.geo_polygon or condition.values_count:
                raise _unsupported(f"a geo or values_count filter on {condition.key}")
            return edge.FieldCondition(
                key=condition.key,
                match=_match(condition.match),
                range=_range(condition.range),
                is_empty=condition.is_empty,
                is_null=condition.is_null,
            )
    raise _unsupported(f"a filter of type {type(condition).__name__}")


def _match(match: object) -> Any:
    match match:
        case None:
            return None
        case models.MatchValue(value=value):
            return edge.MatchValue(value)
        case models.MatchAny(any=values):
            return edge.MatchAny(values)
        case models.MatchExcept(except_=values):
            return edge.MatchExcept(values)
        case models.MatchPrefix(prefix=prefix):
            return edge.MatchPrefix(prefix)
    raise _unsupported(f"a match of type {type(match).__name__}")


def _range(bounds: object) -> Any:
    sides = {side: getattr(bounds, side, None) for side in ("gte", "gt", "lte", "lt")}
    match bounds:
        case None:
            return None
        case models.Range():
            return edge.RangeFloat(**sides)
        case models.DatetimeRange():
            return edge.RangeDateTime(**{side: at.isoformat() if at else None for side, at in sides.items()})
    raise _unsupported(f"a range of type {type(bounds).__name__}")


def _unsupported(what: str) -> StoreError:
    return StoreError(f"the embedded store does not support {what} yet: use a Qdrant server (store.kind)")
