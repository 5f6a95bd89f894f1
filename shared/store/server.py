"""Chunks on a Qdrant server (or cluster) over REST. The same schema as the embedded store."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, TypeVar

from qdrant_client import QdrantClient, models

from shared.errors import StoreError
from shared.models import Hit
from shared.providers.encoders.base import SparseVector
from shared.settings.store import QdrantSettings
from shared.store import layout, schema
from shared.store.base import DENSE, SPARSE, BuiltWith, ChunkPoint, CollectionState, TenantNote
from shared.store.collection import Collection, nothing_ingested
from shared.store.making import index_missing, make_first, meta_of, unused
from shared.store.schema import to_sparse
from shared.store.server_errors import is_missing, server_errors
from shared.store.server_meta import NOTE, WRITING, ServerMeta

#: Writes to one collection by its name; the second argument: whether it takes the dense vectors that are given.
Write = Callable[[str, bool], object]
T = TypeVar("T")
#: A collection that is gone is looked for so often, and so many seconds apart: its alias is being made.
_LOOKS, _LOOK_S = 5, 0.1
#: Seconds that another process may take to make the collection.
_MAKING_S = 20.0


class ServerStore(Collection):
    """A Collection of a Qdrant server. BuiltWith, the index version and tenants' notes stand in its metadata.

    `collection` is an alias, or the name of a collection itself, as older releases made it. While a migration copies
    (`shared.store.migration`), every write goes to the collection that is being filled, too. Of a migration to another
    embedding model both collections are used, until the old one is dropped: by each worker that of its own model.
    """

    def __init__(
        self,
        client: QdrantClient,
        collection: str,
        indexed: bool = True,
        settings: QdrantSettings | None = None,
        model: Callable[[], str | None] | None = None,
    ) -> None:
        """`indexed` False makes no payload indexes: the client's local mode has none.

        `model` names the embedding model of this process; it is called while there are collections of two models.
        """
        self._client = client
        self._collection = self._name = collection
        self._indexed = indexed
        self._complete = not indexed
        self._settings, self._model = settings or QdrantSettings(), model
        self._token = uuid.uuid4().hex[:12]

    def info(self) -> CollectionState | None:
        meta = self._meta()
        if meta is None:
            return None
        with server_errors("reading the collection"):
            points = self._client.count(self._name, exact=True).count
        return meta.state(points)

    def count(self, flt: models.Filter | None) -> int:
        with server_errors("counting"):
            return self._client.count(self._name, flt, exact=True).count if self._exists() else 0

    def create(self, built_with: BuiltWith) -> None:
        """As in Collection. Waits while another process makes it, and finishes what one that has died left."""
        end = time.monotonic() + _MAKING_S
        while self.info() is None:
            if unused(self._client, self._collection) is None or time.monotonic() > end:
                make_first(self._client, self._collection, self._settings, built_with, indexed=self._indexed)
                return
            time.sleep(_LOOK_S)
        raise StoreError(f"the Qdrant collection {self._collection} exists already: use it, or delete it")

    def upsert(self, points: Sequence[ChunkPoint], tenant: str) -> None:
        meta = self._ready()
        ready = [
            models.PointStruct(
                id=point.chunk.chunk_id,
                vector=schema.vectors_of(point, to_sparse),
                payload=schema.payload_of(point, tenant),
            )
            for point in schema.checked(points, meta.built_with)
        ]
        self._index_missing()

        def write(name: str, dense: bool) -> None:
            for batch in schema.sliced(
                ready if dense else [without_dense(point) for point in ready], schema.WRITE_BATCH
            ):
                self._client.upsert(name, batch, wait=True)

        self._write("writing", meta, write)

    def delete(self, flt: models.Filter) -> None:
        if (meta := self._meta()) is not None:
            chosen = models.FilterSelector(filter=flt)
            self._write("deleting", meta, lambda name, _: self._client.delete(name, chosen, wait=True))

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        if not requests:
            return []
        asked = [layout.searching(self._settings, request) for request in requests]
        full = [request.model_copy(update={"with_payload": True}) for request in asked]
        answers = self._read_as("searching", lambda name: self._client.query_batch_points(name, full))
        return [schema.best_first(schema.hit_of(point, point.score) for point in answer.points) for answer in answers]

    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]:
        found = self._read_as("counting", lambda name: self._client.facet(name, field, facet_filter=flt, limit=limit))
        return {str(hit.value): hit.count for hit in found.hits}

    def set_sparse(self, vectors: Mapping[str, SparseVector]) -> None:
        def write(name: str, _dense: bool) -> None:
            for ids in schema.sliced(list(vectors), schema.WRITE_BATCH):
                found = self._client.retrieve(name, ids, with_payload=False)
                stored = [str(record.id) for record in found]
                full = [models.PointVectors(id=i, vector={SPARSE: to_sparse(vectors[i])}) for i in stored if vectors[i]]
                empty: list[Any] = [i for i in stored if not vectors[i]]
                if full:
                    self._client.update_vectors(name, full, wait=True)
                if empty:
                    self._client.delete_vectors(name, [SPARSE], empty, wait=True)

        self._write("replacing sparse vectors", self._ready(), write)

    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        meta = self._ready()
        self._index_missing()
        for batch in schema.sliced(schema.grouped(changes), schema.WRITE_BATCH):
            updates = [
                models.SetPayloadOperation(set_payload=models.SetPayload(payload=payload, filter=schema.of_chunks(ids)))
                for payload, ids in batch
            ]

            def write(name: str, _dense: bool, updates: list[Any] = updates) -> None:
                self._client.batch_update_points(name, updates, wait=True)

            self._write("writing payloads", meta, write)

    def remember(self, tenant: str, note: TenantNote) -> None:
        known = {f"{NOTE}{tenant}": note.model_dump()}
        with server_errors("recording what is known of a tenant"):
            self._to_both(self._ready(), lambda name, _: self._client.update_collection(name, metadata=known))

    def flush(self) -> None:
        """Nothing to do: every write waits until the server has it in its log."""

    def optimize(self) -> None:
        """Nothing to do: the server optimises by itself."""

    def close(self) -> None:
        self._client.close()

    def _index_missing(self) -> None:
        """A collection of an older release gets the indexes that it lacks, once, before the first write."""
        if not self._complete:
            index_missing(self._client, self._name, self._settings)
            self._complete = True

    def _meta(self) -> ServerMeta | None:
        """What the collection says of itself; None when there is none. Finds a collection that has moved."""
        meta = self._read(self._collection)
        if meta is None:  # a collection of an older release that has moved is deleted before an alias can have its name
            return None if self._name == self._collection else self._read(self._name)
        self._name = self._collection
        if meta.moved_to and (moved := self._read(meta.moved_to)):
            meta, self._name = moved, meta.moved_to
        if meta.mirror and not meta.mirror.keeps_dense and self._model:
            return self._of_own_model(meta, meta.mirror.to, self._model())
        return meta

    def _of_own_model(self, meta: ServerMeta, other: str, model: str | None) -> ServerMeta:
        """The one of two collections that was built with this process's model, if it is whole; else the one in use.

        It is called by its own name, which its mirror knows: the alias may mean the other one at any time.
        """
        found = self._read(other)
        if found is None or (found.copying and found.copying.phase != "ready"):
            return meta
        if model not in {meta.built_with.dense, found.built_with.dense}:
            return meta
        if model != meta.built_with.dense:
            self._name = other
            return found
        if found.mirror:
            self._name = found.mirror.to
        return meta

    def _read(self, name: str) -> ServerMeta | None:
        """What a collection says of itself; None when there is none of that name."""
        with server_errors("reading the collection"):
            if not self._client.collection_exists(name):
                return None
            try:
                metadata = self._client.get_collection(name).config.metadata or {}
            except Exception as error:
                if is_missing(error):  # it was deleted between the two
                    return None
                raise
        return meta_of(name, metadata)

    def _ready(self) -> ServerMeta:
        meta = self._meta()
        if meta is None:
            raise nothing_ingested()
        return meta

    def _write(self, doing: str, meta: ServerMeta, write: Write) -> None:
        with server_errors(doing), self._counted(meta):
            self._to_both(meta, write)

    def _to_both(self, meta: ServerMeta, write: Write) -> None:
        """Write to the collection and to its mirror, and of the two to the one that a migration fills last.

        For the migration reads a chunk again once it has copied it (`shared.store.copying`).
        """
        if meta.copying:
            self._to_mirror(meta, write)
        write(self._name, True)
        if not meta.copying:
            self._to_mirror(meta, write)

    def _to_mirror(self, meta: ServerMeta, write: Write) -> None:
        if meta.mirror is None:
            return
        try:
            write(meta.mirror.to, meta.mirror.keeps_dense)
        except Exception as error:
            if not is_missing(error):  # a migration that was given up meanwhile: its collection is gone
                raise

    @contextmanager
    def _counted(self, meta: ServerMeta) -> Iterator[None]:
        """A new index version before and after a write, for the reasons of EmbeddedStore._write.

        While a migration copies, the write stands there until it is done in both collections: one that was cut off is
        found before the migration comes to its end.
        """
        mark = {f"{WRITING}{self._token}-{get_ident()}": 0} if meta.mirror else {}
        self._record(meta, dict.fromkeys(mark, time.time_ns()))
        yield
        self._record(meta, mark)

    def _record(self, meta: ServerMeta, marks: Mapping[str, int]) -> None:
        # The clock instead of a count: several index workers write, and none of them reads before.
        known = {"index_version": time.time_ns(), **marks}
        self._client.update_collection(self._name, metadata=known)
        if meta.mirror and not meta.mirror.keeps_dense:  # which others search meanwhile
            self._to_mirror(meta, lambda name, _: self._client.update_collection(name, metadata=known))

    def _exists(self) -> bool:
        with server_errors("reading the collection"):
            return self._client.collection_exists(self._name)

    def _page(
        self, flt: models.Filter | None, size: int, fields: bool | list[str], start: Any, vectors: bool = False
    ) -> tuple[Sequence[Any], Any]:
        wanted = [DENSE] if vectors else False
        return self._read_as(
            "reading",
            lambda name: self._client.scroll(name, flt, size, offset=start, with_payload=fields, with_vectors=wanted),
        )

    def _read_as(self, doing: str, call: Callable[[str], T]) -> T:
        """`call` with the collection's name, again where that one has gone: there may be another one by now."""
        try:
            with server_errors(doing):
                return call(self._name)
        except StoreError as error:
            if not isinstance(error.__cause__, Exception) or not is_missing(error.__cause__):
                raise
            for _ in range(_LOOKS):
                if self._meta() is not None:
                    with server_errors(doing):
                        return call(self._name)
                time.sleep(_LOOK_S)
            raise


def without_dense(point: models.PointStruct) -> models.PointStruct:
    """The point without its dense vector."""
    vectors = point.vector if isinstance(point.vector, dict) else {}
    return point.model_copy(update={"vector": {name: given for name, given in vectors.items() if name != DENSE}})
