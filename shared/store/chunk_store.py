"""The chunks of one tenant: whatever is asked through a ChunkStore, only that tenant's chunks are there.

This is the one place where a tenant becomes a condition. There is no ChunkStore without a tenant, and
none spans tenants.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from qdrant_client import models

from shared.errors import StoreError, TransientError
from shared.models import Hit
from shared.providers.encoders.base import SparseVector
from shared.store import schema
from shared.store.base import BuiltWith, ChunkPoint, CollectionInfo, CollectionState
from shared.store.collection import Collection, nothing_ingested
from shared.store.schema import TENANT
from shared.store.snapshot_file import SnapshotFile
from shared.tenants import DEFAULT_TENANT, tenant_name

_WITHOUT_TENANT = models.Filter(must=[schema.without(TENANT)])
#: Seconds that a caller waits while another thread gives chunks of an older release to the tenant `default`, which
#: takes about 25 us a chunk of an embedded store.
_ADOPTION_WAIT_S = 10.0
_log = logging.getLogger("ramify.store")


class ChunkStore:
    """The chunks of one tenant and their vectors. Adds the tenant to every filter and every write; cheap to construct.

    What could look past a filter (prefetches, lookups in other collections, queries by the id of a chunk) is refused.
    Reads may come from many threads; writes go one at a time. Every method raises StoreError when the store cannot do
    it for good, and TransientError when it may work later.
    """

    def __init__(self, collection: Collection, tenant: str) -> None:
        """Raises: InputError when `tenant` is no tenant's name."""
        self._collection, self._tenant = collection, tenant_name(tenant)
        self._own = schema.equals(TENANT, self._tenant)
        self._points = (-1, 0)  # index version -> chunks: counting costs more than a search

    @property
    def tenant(self) -> str:
        """Whose chunks these are."""
        return self._tenant

    def info(self) -> CollectionInfo | None:
        """What is stored; None when there is no collection yet."""
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
        """Make the empty collection with its vectors and payload indexes, or join the one that other tenants have.

        Raises: StoreError when the tenant has chunks there already, or when it was built with other encoders.
        """
        info = self.info()
        if info is None or not info.new:
            self._collection.create(built_with)
        elif info.built_with.model_copy(update={"avg_len": built_with.avg_len}) != built_with:
            raise StoreError("the collection holds other tenants' chunks, of other encoders: use their settings")
        self._remember(avg_len=built_with.avg_len)

    def upsert(self, points: Sequence[ChunkPoint]) -> None:
        """Add or replace chunks by `chunk_id` (a UUID).

        Raises: StoreError when a chunk id is another tenant's: the chunk would be taken from there.
        """
        for ids in schema.sliced([point.chunk.chunk_id for point in points], schema.READ_BATCH):
            foreign = models.Filter(must=[schema.of_chunks(ids)], must_not=[self._own, schema.without(TENANT)])
            if self._collection.count(foreign):
                raise StoreError(
                    "chunks of these ids belong to another tenant: ids must be made of the tenant's name, too"
                )
        self._collection.upsert(points, self._tenant)

    def delete_chunks(self, doc_id: str, keep: Sequence[str]) -> None:
        """Remove the chunks of a document except those whose ids are in `keep`."""
        self._collection.delete(self._within(schema.stale_chunks(doc_id, keep)))

    def delete_documents(self, doc_ids: Sequence[str]) -> None:
        """Remove all chunks of these documents."""
        if doc_ids:
            self._collection.delete(self._within(schema.of_documents(doc_ids)))

    def document_hashes(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """doc_id -> content hash, for those of `doc_ids` that are stored."""
        return schema.hashes_of(self._documents(schema.of_documents(doc_ids))) if doc_ids else {}

    def origins(self, doc_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """doc_id -> (source, path) under which it was ingested, for those of `doc_ids` that are stored."""
        found = self._documents(schema.of_documents(doc_ids)) if doc_ids else ()
        return {payload["doc_id"]: (payload["source"], payload["path"]) for payload in found}

    def documents(self, source: str) -> dict[str, str]:
        """doc_id -> path of everything ingested from `source`."""
        return {payload["doc_id"]: payload["path"] for payload in self._documents(schema.of_source(source))}

    def parts_of(self, file_ids: Sequence[str]) -> dict[str, str]:
        """doc_id -> path of the documents that were read from one of these files, where those have several."""
        found = self._documents(models.Filter(must=[schema.one_of("file_id", file_ids)])) if file_ids else ()
        return {payload["doc_id"]: payload["path"] for payload in found}

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        """Hits of each request, best first, ties by chunk id, in one batched call.

        A request without a query gives the first matching chunks by id, all with the same score.
        """
        return self._collection.query([self._scoped(request) for request in requests])

    def scroll(self, flt: models.Filter | None, batch: int = 256) -> Iterator[list[Hit]]:
        """All matching chunks in pages of `batch`, ordered by id, with score 0."""
        return self._collection.scroll(self._within(flt), batch)

    def read(
        self, flt: models.Filter | None, fields: Sequence[str], start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """chunk_id and the named payload fields of all matching chunks, ordered by id; none without a collection.

        `start` and `stop` bound the ids (UUIDs): from the first, without the second.
        """
        return self._collection.read(self._within(flt), fields, start, stop)

    def count(self, flt: models.Filter | None) -> int:
        """How many chunks match, exactly; 0 without a collection."""
        return self._collection.count(self._within(flt))

    def lookup(self, flt: models.Filter, limit: int, vectors: bool = False) -> list[Hit]:
        """Up to `limit` matching chunks in one call, ordered by id, with score 0.

        `vectors` gives them their dense vectors; ask for them only where the collection has some (`BuiltWith.dim`).
        """
        return self._collection.lookup(self._within(flt), limit, vectors)

    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]:
        """How many matching chunks hold each value of a keyword `field`: the `limit` most frequent values.

        Chunks that are being written may count twice: exact counts cost ten times as much (measured).
        """
        return self._collection.count_values(field, self._within(flt), limit)

    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Set payload fields by chunk id; the other fields stay, and ids that are gone are passed over.

        Raises: StoreError for a change of the tenant itself.
        """
        if any(TENANT in payload for payload in changes.values()):
            raise StoreError(f"the payload field {TENANT} is written by the store alone: ingest under the other tenant")
        if own := self._owned(changes):
            self._collection.set_payloads(own)

    def set_sparse(self, vectors: Mapping[str, SparseVector], avg_len: float) -> None:
        """Replace sparse vectors by chunk id and record the `avg_len` (tokens) they were made with as the tenant's."""
        self._collection.set_sparse(self._owned(vectors))
        # last: after a crash before it the old length stays, and the next ingest finds the drift again
        self._remember(avg_len=avg_len)

    def set_backlinks(self, counts: Mapping[str, int]) -> None:
        """Set `Chunk.backlinks` by doc_id; other documents keep theirs. Writes only what is stored differently."""
        for doc_ids in schema.sliced(list(counts), schema.READ_BATCH):
            changes = {
                chunk_id: {"backlinks": counts[stored["doc_id"]]}
                for chunk_id, stored in self.read(schema.of_documents(doc_ids), ("doc_id", "backlinks"))
                if stored.get("backlinks", 0) != counts[stored["doc_id"]]
            }
            if changes:
                self.set_payloads(changes)

    def mark_finished(self, state: str) -> None:
        """Record that an ingest of the tenant came to its end with this state. No write: the index version stays."""
        self._remember(finished=state)

    def flush(self) -> None:
        """Return once everything written is on disk."""
        self._collection.flush()

    def optimize(self) -> None:
        """Tidy segments and build indexes; may take seconds."""
        self._collection.optimize()

    def _documents(self, flt: models.Filter) -> Iterator[dict[str, Any]]:
        return (payload for _, payload in self.read(flt, schema.DOCUMENT_FIELDS))

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

    def _owned(self, by_id: Mapping[str, Any]) -> dict[str, Any]:
        """What is meant for chunks of the tenant: ids of others are passed over like ids that are gone."""
        return {
            chunk_id: by_id[chunk_id]
            for ids in schema.sliced(list(by_id), schema.READ_BATCH)
            for chunk_id, _ in self.read(schema.of_chunks(ids), ("doc_id",))
        }

    def _remember(self, **changes: Any) -> None:
        state = self._collection.info()
        if state is None:
            raise nothing_ingested()
        self._collection.remember(self._tenant, state.note(self._tenant).model_copy(update=changes))


def _is_dense(query: object) -> bool:
    return isinstance(query, list) and bool(query) and all(isinstance(number, int | float) for number in query)


def _refused(what: str) -> StoreError:
    return StoreError(f"{what} could look past the tenant and is refused: ask with vectors and filters")


class TenantStores:
    """One collection, handed out tenant by tenant: the only holder of the whole. Safe for threads."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._adopting, self._adopted = Lock(), False

    def of(self, tenant: str) -> ChunkStore:
        """The chunks of one tenant.

        Raises: InputError when that is no name; StoreError or TransientError where older chunks could not be given
        to the tenant `default`, which is tried again each time.
        """
        store = ChunkStore(self._collection, tenant)
        self._adopt_once()
        return store

    def state(self) -> CollectionState | None:
        """The whole collection, for the operator. None when there is none yet. Raises: as `of`."""
        self._adopt_once()
        return self._collection.info()

    def without_tenant(self) -> int:
        """Chunks that no tenant sees: an older release wrote them after this process had opened the collection."""
        return self._collection.count(_WITHOUT_TENANT)

    def snapshot(self, to: Path) -> SnapshotFile:
        """Write all chunks of all tenants into a file. Raises: StoreError."""
        return self._collection.snapshot(to)

    def close(self) -> None:
        """Release the collection. Safe to call twice."""
        self._collection.close()

    def _adopt_once(self) -> None:
        if self._adopted:
            return
        if not self._adopting.acquire(timeout=_ADOPTION_WAIT_S):
            raise TransientError("chunks of an older release are being given to the tenant default: ask again later")
        try:
            if not self._adopted:
                self._adopt()
                self._adopted = True
        finally:
            self._adopting.release()

    def _adopt(self) -> None:
        """Give all chunks without a tenant to the tenant `default`. May be done again, and by several processes."""
        given = 0
        if self.without_tenant():
            ids = (chunk_id for chunk_id, _ in self._collection.read(_WITHOUT_TENANT, ("doc_id",)))
            while some := list(islice(ids, schema.READ_BATCH)):
                self._collection.set_payloads({chunk_id: {TENANT: DEFAULT_TENANT} for chunk_id in some})
                given += len(some)
            _log.warning("%d chunks of an older release are the tenant %s's now", given, DEFAULT_TENANT)
