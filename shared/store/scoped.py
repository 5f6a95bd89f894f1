"""One tenant's view of a collection: whatever is asked through it, only that tenant's chunks are there.

This is the one place where a tenant becomes a condition. There is no view without a tenant, and none of all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from threading import Lock
from typing import Any

from qdrant_client import models

from shared.errors import StoreError, TransientError
from shared.models import Hit
from shared.providers.encoders.base import SparseVector
from shared.store import schema
from shared.store.base import BuiltWith, ChunkPoint, Collection, CollectionInfo, CollectionState
from shared.store.documents import ByDocument
from shared.store.schema import PAGE, TENANT, equals, sliced
from shared.tenants import DEFAULT_TENANT, tenant_name


class ScopedStore(ByDocument):
    """The ChunkStore of one tenant. Adds the tenant to every filter and every write; light, one for each use is fine.

    What could look past a filter (prefetches, lookups in other collections, queries by the id of a chunk) is refused.
    """

    def __init__(self, collection: Collection, tenant: str) -> None:
        """Raises: InputError when `tenant` is no name: without one there is nothing to see."""
        self._collection, self._tenant = collection, tenant_name(tenant)
        self._own = equals(TENANT, self._tenant)
        self._points = (-1, 0)  # index version -> chunks: counting costs more than a search

    @property
    def tenant(self) -> str:
        return self._tenant

    def info(self) -> CollectionInfo | None:
        state = self._collection.info()
        if state is None:
            return None
        if self._points[0] != state.index_version:
            self._points = (state.index_version, self.count(None))
        note = state.note(self._tenant)
        built_with = state.built_with
        if note.avg_len is not None:
            built_with = built_with.model_copy(update={"avg_len": note.avg_len})
        return CollectionInfo(
            built_with=built_with,
            points=self._points[1],
            index_version=state.index_version,
            finished=note.finished,
            new=note.avg_len is None and self._points[1] == 0,
        )

    def create(self, built_with: BuiltWith) -> None:
        info = self.info()
        if info is None or not info.new:
            self._collection.create(built_with)
        elif info.built_with.model_copy(update={"avg_len": built_with.avg_len}) != built_with:
            raise StoreError("the collection holds other tenants' chunks, of other encoders: use their settings")
        self._remember(avg_len=built_with.avg_len)

    def upsert(self, points: Sequence[ChunkPoint]) -> None:
        """See ChunkStore. Raises: StoreError when a chunk id is another tenant's: it would be taken from there."""
        for some in sliced([point.chunk.chunk_id for point in points], PAGE):
            self._refuse_foreign(some)
        self._collection.upsert(points, self._tenant)

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        return self._collection.query([self._scoped(request) for request in requests])

    def scroll(self, flt: models.Filter | None, batch: int = 256) -> Iterator[list[Hit]]:
        return self._collection.scroll(self._within(flt), batch)

    def read(
        self, flt: models.Filter | None, fields: Sequence[str], start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        return self._collection.read(self._within(flt), fields, start, stop)

    def count(self, flt: models.Filter | None) -> int:
        return self._collection.count(self._within(flt))

    def lookup(self, flt: models.Filter, limit: int, vectors: bool = False) -> list[Hit]:
        return self._collection.lookup(self._within(flt), limit, vectors)

    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]:
        return self._collection.count_values(field, self._within(flt), limit)

    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """See ChunkStore. Raises: StoreError for a change of the tenant itself."""
        if any(TENANT in payload for payload in changes.values()):
            raise StoreError(f"the payload field {TENANT} is written by the store alone: ingest under the other tenant")
        if own := self._mine(changes):
            self._collection.set_payloads(own)

    def set_sparse(self, vectors: Mapping[str, SparseVector], avg_len: float) -> None:
        self._collection.set_sparse(self._mine(vectors))
        # last: a crash before it leaves the old length, and the drift is found and mended again
        self._remember(avg_len=avg_len)

    def mark_finished(self, state: str) -> None:
        self._remember(finished=state)

    def flush(self) -> None:
        self._collection.flush()

    def optimize(self) -> None:
        self._collection.optimize()

    def _delete(self, flt: models.Filter) -> None:
        self._collection.delete(self._within(flt))

    def _within(self, flt: models.Filter | None) -> models.Filter:
        """The tenant's chunks that match. The filter given is a condition of its own: its `should` cannot widen it."""
        return models.Filter(must=[self._own, *([flt] if flt is not None else [])])

    def _scoped(self, request: models.QueryRequest) -> models.QueryRequest:
        """The request for the tenant's chunks. Words are weighed by how rare they are among those (IDF), too."""
        if request.prefetch or request.lookup_from or request.shard_key:
            raise _refused("prefetch, lookup_from and shard_key")
        query = request.query
        if isinstance(query, models.NearestQuery) and query.mmr is None:
            query = query.nearest
        if not (query is None or isinstance(query, models.SparseVector) or _is_dense(query)):
            raise _refused(f"a query of type {type(query).__name__}")
        params = request.params
        if isinstance(query, models.SparseVector):
            corpus = models.IdfCorpusParams(corpus=models.Filter(must=[self._own]))
            params = (params or models.SearchParams()).model_copy(update={"idf": corpus})
        elif params is not None and params.idf is not None:
            params = params.model_copy(update={"idf": None})
        return request.model_copy(update={"query": query, "filter": self._within(request.filter), "params": params})

    def _mine(self, by_id: Mapping[str, Any]) -> dict[str, Any]:
        """What is meant for chunks of the tenant: ids of others are passed over like ids that are gone."""
        mine: dict[str, Any] = {}
        for ids in sliced(list(by_id), PAGE):
            held = self.read(schema.of_chunks(ids), ("doc_id",))
            mine |= {chunk_id: by_id[chunk_id] for chunk_id, _ in held}
        return mine

    def _refuse_foreign(self, chunk_ids: Sequence[str]) -> None:
        named = schema.of_chunks(chunk_ids)
        taken = models.Filter(must=[named], must_not=[self._own, schema.without(TENANT)])
        if self._collection.count(taken):
            raise StoreError("chunks of these ids belong to another tenant: ids must be made of the tenant's name, too")

    def _remember(self, **changes: Any) -> None:
        state = self._collection.info()
        if state is None:
            raise StoreError("nothing has been ingested yet: run `ramify ingest PATH`")
        self._collection.remember(self._tenant, state.note(self._tenant).model_copy(update=changes))


def _is_dense(query: object) -> bool:
    return isinstance(query, list) and bool(query) and all(isinstance(number, int | float) for number in query)


def _refused(what: str) -> StoreError:
    return StoreError(f"{what} could look past the tenant and is refused: ask with vectors and filters")


# --- Hands out a collection tenant by tenant. The only holder of the whole collection; asked for itself by nobody.

log = logging.getLogger("ramify.store")
#: Seconds that a question waits for it. It takes about 25 us a chunk of an embedded store.
_ADOPTING_S = 10.0


class TenantStores:
    """One collection. Safe for threads."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._adopting, self._adopted = Lock(), False

    def of(self, tenant: str) -> ScopedStore:
        """The chunks of one tenant.

        Raises: InputError when that is no name; StoreError or TransientError where older chunks could not be given
        to the tenant `default`, which is tried again each time.
        """
        view = ScopedStore(self._collection, tenant)
        self._adopt_once()
        return view

    def state(self) -> CollectionState | None:
        """The whole collection, for the operator. None when there is none yet. Raises: as `of`."""
        self._adopt_once()
        return self._collection.info()

    def without_tenant(self) -> int:
        """Chunks that no tenant sees: an older release wrote them after this process had opened the collection."""
        return self._collection.count(_ORPHANS)

    def close(self) -> None:
        """Let go of the collection. Safe to call twice."""
        self._collection.close()

    def _adopt_once(self) -> None:
        if self._adopted:
            return
        if not self._adopting.acquire(timeout=_ADOPTING_S):
            raise TransientError("chunks of an older release are being given to the tenant default: ask again later")
        try:
            if not self._adopted:
                adopt(self._collection)
                self._adopted = True
        finally:
            self._adopting.release()


_ORPHANS = schema.all_of(schema.without(TENANT))


def adopt(collection: Collection) -> int:
    """Give all chunks without a tenant to the tenant `default`; how many those were. May be done again, and by several.

    Raises: StoreError or TransientError of the collection.
    """
    if not collection.count(_ORPHANS):
        return 0
    ids = (chunk_id for chunk_id, _ in collection.read(_ORPHANS, ("doc_id",)))
    given = 0
    while some := list(islice(ids, PAGE)):
        collection.set_payloads({chunk_id: {TENANT: DEFAULT_TENANT} for chunk_id in some})
        given += len(some)
    log.warning("%d chunks of an older release are the tenant %s's now", given, DEFAULT_TENANT)
    return given
