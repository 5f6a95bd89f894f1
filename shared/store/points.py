"""The points of one collection as they are stored, of all tenants: for copies and their verification alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qdrant_client import QdrantClient, models

from shared.settings.store import QdrantSettings
from shared.store import layout
from shared.store.base import DENSE
from shared.store.schema import READ_BATCH, WRITE_BATCH, sliced
from shared.store.server_errors import server_errors

#: Values of a field that are counted; a collection with more tenants is compared by its most frequent ones.
_COUNTED = 100_000


class FoundPoint(NamedTuple):
    """A point that a search has found."""

    id: str
    score: float


class Points(ABC):
    """What a copy reads. Every method raises StoreError, or TransientError where it may work later."""

    #: Whether others may write meanwhile.
    live = True

    @abstractmethod
    def page(self, start: str, size: int, *, vectors: bool = True) -> tuple[list[models.PointStruct], str]:
        """Up to `size` points from the id `start` on, in the order of their ids, and the next start; "" at the end."""

    @abstractmethod
    def of(self, ids: Sequence[str]) -> dict[str, models.PointStruct]:
        """Those of these points that are stored, with payload and vectors."""

    @abstractmethod
    def count(self, flt: models.Filter | None = None) -> int:
        """How many points match, exactly."""

    @abstractmethod
    def count_values(self, field: str) -> dict[str, int]:
        """How many points hold each value of a keyword field, exactly."""

    @abstractmethod
    def nearest(self, requests: Sequence[models.QueryRequest]) -> list[list[FoundPoint]]:
        """The points that each request finds, best first."""

    @abstractmethod
    def version(self) -> int:
        """The index version: it is another one after every write."""


class ServerPoints(Points):
    """A collection of a Qdrant server by its own name."""

    def __init__(self, client: QdrantClient, name: str, settings: QdrantSettings) -> None:
        self._client, self.name, self._settings = client, name, settings

    def page(
        self, start: str, size: int, *, vectors: bool = True, flt: models.Filter | None = None
    ) -> tuple[list[models.PointStruct], str]:
        with server_errors(f"reading {self.name}"):
            records, following = self._client.scroll(
                self.name, flt, size, offset=start or None, with_payload=True, with_vectors=vectors
            )
        return [_point(record) for record in records], str(following or "")

    def of(self, ids: Sequence[str]) -> dict[str, models.PointStruct]:
        with server_errors(f"reading {self.name}"):
            found = self._client.retrieve(self.name, list(ids), with_payload=True, with_vectors=True)
        return {str(record.id): _point(record) for record in found}

    def count(self, flt: models.Filter | None = None) -> int:
        with server_errors(f"counting in {self.name}"):
            return self._client.count(self.name, flt, exact=True).count

    def count_values(self, field: str) -> dict[str, int]:
        with server_errors(f"counting in {self.name}"):
            found = self._client.facet(self.name, field, limit=_COUNTED, exact=True)
        return {str(hit.value): hit.count for hit in found.hits}

    def nearest(self, requests: Sequence[models.QueryRequest]) -> list[list[FoundPoint]]:
        asked = [layout.searching(self._settings, request) for request in requests]
        with server_errors(f"searching {self.name}"):
            answers = self._client.query_batch_points(self.name, asked)
        return [[FoundPoint(str(point.id), point.score) for point in answer.points] for answer in answers]

    def version(self) -> int:
        with server_errors(f"reading {self.name}"):
            metadata = self._client.get_collection(self.name).config.metadata or {}
        return int(metadata.get("index_version", 0))

    def put(self, points: Sequence[models.PointStruct]) -> None:
        """Add or replace points as they are."""
        with server_errors(f"writing to {self.name}"):
            for batch in sliced(points, WRITE_BATCH):
                self._client.upsert(self.name, batch, wait=True)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove points; those that are gone are passed over."""
        with server_errors(f"writing to {self.name}"):
            for batch in sliced(ids, READ_BATCH):
                self._client.delete(self.name, models.PointIdsList(points=list[Any](batch)), wait=True)

    def put_dense(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """Give points their dense vectors; an empty one takes it away. Points that are gone are passed over."""
        with server_errors(f"writing to {self.name}"):
            stored = {str(one.id) for one in self._client.retrieve(self.name, list(vectors), with_payload=False)}
            full = [
                models.PointVectors(id=one, vector={DENSE: list(vector)})
                for one, vector in vectors.items()
                if one in stored and vector
            ]
            empty: list[Any] = [one for one, vector in vectors.items() if one in stored and not vector]
            if full:
                self._client.update_vectors(self.name, full, wait=True)
            if empty:
                self._client.delete_vectors(self.name, [DENSE], empty, wait=True)


def without_vector(name: str) -> models.Filter:
    """Points that lack this vector."""
    return models.Filter(must_not=[models.HasVectorCondition(has_vector=name)])


def _point(record: models.Record) -> models.PointStruct:
    vector: Any = record.vector or {}
    return models.PointStruct(id=str(record.id), vector=vector, payload=record.payload or {})
