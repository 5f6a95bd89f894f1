"""Turns neutral queries (qdrant_client.models) into Qdrant Edge's classes. What Edge cannot do is said, not skipped."""

from __future__ import annotations

from typing import Any

import qdrant_edge as edge
from qdrant_client import models

from shared.errors import StoreError

#: Qdrant's own default where a request names no limit.
DEFAULT_LIMIT = 10


def edge_query(request: models.QueryRequest) -> edge.QueryRequest:
    """One nearest-vector request, or, without a query, matching chunks by id; the whole payload is always read.

    Raises: StoreError when the request asks for more than the embedded store can do.
    """
    if request.prefetch or request.lookup_from or request.shard_key:
        raise _unsupported("prefetch, lookup_from and shard_key")
    return edge.QueryRequest(
        limit=DEFAULT_LIMIT if request.limit is None else request.limit,
        offset=request.offset,
        query=None
        if request.query is None
        else edge.Query.Nearest(_vector(request.query), using=_using(request.using)),
        with_vector=_with_vector(request.with_vector),
        with_payload=True,
        filter=edge_filter(request.filter),
        score_threshold=request.score_threshold,
        params=_params(request.params),
    )


def edge_filter(flt: models.Filter | None) -> edge.Filter | None:
    """The same filter for Edge.

    Raises: StoreError on a condition that the embedded store does not know.
    """
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


def _using(name: str | None) -> str:
    if name is None:
        raise StoreError("the query names no vector: set `using`")
    return name


def _with_vector(wanted: bool | list[str] | None) -> bool | list[str]:
    return wanted if wanted is not None else False


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
    if given is None:
        return None
    return [_condition(item) for item in (given if isinstance(given, list) else [given])]


def _condition(condition: object) -> Any:
    match condition:
        case models.Filter():
            return edge_filter(condition)
        case models.HasIdCondition():
            return edge.HasIdCondition(set(condition.has_id))
        case models.HasVectorCondition():
            return edge.HasVectorCondition(condition.has_vector)
        case models.IsEmptyCondition():
            return edge.IsEmptyCondition(condition.is_empty.key)
        case models.IsNullCondition():
            return edge.IsNullCondition(condition.is_null.key)
        case models.FieldCondition():
            return _field(condition)
    raise _unsupported(f"a filter of type {type(condition).__name__}")


def _field(condition: models.FieldCondition) -> edge.FieldCondition:
    if condition.geo_bounding_box or condition.geo_radius or condition.geo_polygon or condition.values_count:
        raise _unsupported(f"a geo or values_count filter on {condition.key}")
    return edge.FieldCondition(
        key=condition.key,
        match=_match(condition.match),
        range=_range(condition.range),
        is_empty=condition.is_empty,
        is_null=condition.is_null,
    )


def _match(match: object) -> Any:
    match match:
        case None:
            return None
        case models.MatchValue():
            return edge.MatchValue(match.value)
        case models.MatchAny():
            return edge.MatchAny(match.any)
        case models.MatchExcept():
            return edge.MatchExcept(match.except_)
        case models.MatchPrefix():
            return edge.MatchPrefix(match.prefix)
    raise _unsupported(f"a match of type {type(match).__name__}")


def _range(bounds: object) -> Any:
    match bounds:
        case None:
            return None
        case models.Range():
            return edge.RangeFloat(gte=bounds.gte, gt=bounds.gt, lte=bounds.lte, lt=bounds.lt)
        case models.DatetimeRange():
            sides = {side: getattr(bounds, side) for side in ("gte", "gt", "lte", "lt")}
            return edge.RangeDateTime(**{side: at.isoformat() if at else None for side, at in sides.items()})
    raise _unsupported(f"a range of type {type(bounds).__name__}")


def _unsupported(what: str) -> StoreError:
    return StoreError(f"the embedded store does not support {what} yet: use a Qdrant server (store.kind)")
