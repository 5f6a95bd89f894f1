"""Holds a copy of a collection against what it was made of: counts by tenant and namespace, and sampled searches."""

from __future__ import annotations

import math
import random
import time
import uuid
from collections.abc import Sequence

from pydantic import Field
from qdrant_client import models

from shared.models.base import Model
from shared.store.base import DENSE, SPARSE
from shared.store.points import FoundPoint, Points
from shared.store.schema import TENANT, equals

#: Hits of a sampled search.
_HITS = 10
#: How far scores of hits may be apart that stand for each other: how rare words are changes with each write.
_TIED, _TIED_BY_WORDS = 1e-3, 0.05
#: Words of a chunk by which it is searched for.
_WORDS = 6
#: Times that counts are read again while writers are between the two collections, and the seconds between.
_TRIES, _PAUSE_S = 10, 0.5


class CopyVerification(Model):
    """What was found. `unlike`: counts that differ, as "tenant acme: 10 and 9".

    Overlaps are the shares of a search's first ten hits that the copy finds, too; None: not searched so. Of dense
    vectors the hits are those of an exact search of the source, and `dense_before` is the share that its own usual
    searches find. Of another model they are those that the source finds with its own vectors.
    """

    chunks: int = Field(ge=0)
    copied: int = Field(ge=0)
    unlike: tuple[str, ...] = ()
    searches: int = 0
    keyword_overlap: float | None = None
    dense_overlap: float | None = None
    dense_before: float | None = None


def verified(source: Points, target: Points, searches: int, *, same_vectors: bool) -> CopyVerification:
    """Compare two collections. `same_vectors` False: their dense vectors are of two models, and may find others."""
    for left in range(_TRIES, 0, -1):
        here, there = source.count(), target.count()
        unlike = [*_unlike(source, target, TENANT), *_unlike(source, target, "namespace")]
        if here != there:
            unlike.insert(0, f"chunks: {here:,} and {there:,}")
        if not unlike or not source.live or left == 1:
            break
        time.sleep(_PAUSE_S)
    sampled = _sample(source, searches)
    before, after = _dense_overlaps(source, target, sampled, same_vectors)
    return CopyVerification(
        chunks=here,
        copied=there,
        unlike=tuple(unlike),
        searches=len(sampled),
        keyword_overlap=_keyword_overlap(source, target, sampled),
        dense_overlap=after,
        dense_before=before,
    )


def _unlike(source: Points, target: Points, field: str) -> list[str]:
    here, there = source.count_values(field), target.count_values(field)
    return [
        f"{field} {value}: {here.get(value, 0):,} and {there.get(value, 0):,}"
        for value in sorted({**here, **there})
        if here.get(value, 0) != there.get(value, 0)
    ]


def _sample(source: Points, size: int) -> list[models.PointStruct]:
    """Points at random ids; few where there are few."""
    chance = random.Random(size)  # noqa: S311 - a sample, no secret
    found: dict[str, models.PointStruct] = {}
    for _ in range(size):
        start = str(uuid.UUID(int=chance.getrandbits(128)))
        points, _ = source.page(start, 1)
        if not points:
            points, _ = source.page("", 1)
        found.update({str(point.id): point for point in points})
    return list(found.values())


def _keyword_overlap(source: Points, target: Points, sampled: Sequence[models.PointStruct]) -> float | None:
    asked = []
    for point in sampled:
        vector = point.vector.get(SPARSE) if isinstance(point.vector, dict) else None
        if isinstance(vector, models.SparseVector) and vector.indices:
            words = sorted(zip(vector.values, vector.indices, strict=True), reverse=True)[:_WORDS]
            query = models.SparseVector(indices=[index for _, index in words], values=[1.0] * len(words))
            asked.append(_request(point, query, SPARSE))
    return _overlap(source.nearest(asked), target.nearest(asked), _TIED_BY_WORDS) if asked else None


def _dense_overlaps(
    source: Points, target: Points, sampled: Sequence[models.PointStruct], same_vectors: bool
) -> tuple[float | None, float | None]:
    """Searched with the vector that each collection has of the sampled chunk: what source and target find."""
    pairs = []
    copies = {} if same_vectors else target.of([str(point.id) for point in sampled])
    for point in sampled:
        here, there = _dense(point), _dense(point if same_vectors else copies.get(str(point.id)))
        if here and there:
            pairs.append((_request(point, here, DENSE), _request(point, there, DENSE)))
    if not pairs:
        return None, None
    asked, exact = [here for here, _ in pairs], models.SearchParams(exact=True)
    right = source.nearest([one.model_copy(update={"params": exact}) for one in asked])
    found = target.nearest([there for _, there in pairs])
    return _overlap(right, source.nearest(asked), _TIED), _overlap(right, found, _TIED)


def _dense(point: models.PointStruct | None) -> list[float]:
    vectors = point.vector if point is not None and isinstance(point.vector, dict) else {}
    given = vectors.get(DENSE)
    return [float(number) for number in given if isinstance(number, int | float)] if isinstance(given, list) else []


def _request(point: models.PointStruct, query: models.SparseVector | list[float], using: str) -> models.QueryRequest:
    """As users search: among the tenant's chunks."""
    tenant = str((point.payload or {}).get(TENANT, ""))
    return models.QueryRequest(
        query=query, using=using, limit=_HITS, filter=models.Filter(must=[equals(TENANT, tenant)])
    )


def _overlap(here: Sequence[Sequence[FoundPoint]], there: Sequence[Sequence[FoundPoint]], tied: float) -> float:
    """The mean share of hits that are in the other list, or that tie there with the last one."""
    shares = []
    for one, other in zip(here, there, strict=True):
        ids, last = {found.id for found in other}, other[-1].score if other else math.inf
        same = [found for found in one if found.id in ids or math.isclose(found.score, last, rel_tol=tied)]
        if one:
            shares.append(len(same) / len(one))
    return sum(shares) / len(shares) if shares else 1.0
