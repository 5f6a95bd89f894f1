"""Chunks in Qdrant Edge, in this process: the search worker's. Never forks and is never used after a fork."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import qdrant_edge as edge
from qdrant_client import models

from shared.byte_cache import ByteCache
from shared.errors import RamifyError, StoreError, StoreInUseError
from shared.models import Hit
from shared.providers.encoders.base import SparseVector
from shared.store import schema
from shared.store.base import DENSE, SPARSE, TRIGRAM, BuiltWith, ChunkPoint, CollectionState, TenantNote
from shared.store.collection import Collection, nothing_ingested
from shared.store.edge_query import edge_filter, edge_query
from shared.store.meta import StoreMeta, read_meta, unusable, write_meta
from shared.store.snapshot_file import SnapshotFile, archive

_SHARD = "shard"
#: kB of vectors in a segment from which HNSW is built: about 50,000 chunks of 384 floats, below which an exact scan
#: costs 1-3 ms (measured).
_INDEXING_THRESHOLD_KB = 80_000
#: Bytes of chunks that were read and are kept while nothing is written: their payloads cost more than a search.
_READ_BYTES = 32 * 1024 * 1024
#: What a chunk takes beside its text, about.
_HIT_BYTES = 2000
#: The number of a record's id, its id, itself.
_Numbered = tuple[int, UUID, Any]


@contextmanager
def _edge_errors(doing: str) -> Iterator[None]:
    """Turns whatever Edge raises (bare Exception, or a Rust panic outside of Exception) into a StoreError."""
    try:
        yield
    except (RamifyError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise StoreError(f"the embedded store failed while {doing}: {error}") from error


class EmbeddedStore(Collection):
    """A Collection in `folder`: `meta.json` and `shard/`.

    Reads take no lock of ours, since every Edge call holds the interpreter's; writes go one at a time.
    """

    def __init__(self, folder: Path) -> None:
        """Open what is there. Raises: StoreError when the store is in use or damaged."""
        self._folder = folder
        self._writing = threading.RLock()
        self._shard: edge.EdgeShard | None = None
        self._meta: StoreMeta | None = None
        self._owner = os.getpid()
        self._closed = False
        self._read: ByteCache[int, Hit] = ByteCache(_READ_BYTES)
        self._read_at = 0
        self._counted = (0, 0)
        self._opened()

    def info(self) -> CollectionState | None:
        if self._opened() is None or self._meta is None:
            return None
        meta = self._meta
        if self._counted[0] != meta.index_version:
            self._counted = meta.index_version, self.count(None)
        return CollectionState(points=self._counted[1], **{name: value for name, value in meta if name != "format"})

    def count(self, flt: models.Filter | None) -> int:
        shard = self._opened()
        with _edge_errors("counting"):
            return shard.count(edge.CountRequest(exact=True, filter=edge_filter(flt))) if shard else 0

    def create(self, built_with: BuiltWith) -> None:
        with self._writing:
            if self._opened() is not None:
                raise StoreError(f"the store in {self._folder} exists already: use it, or move it away")
            _make_shard(self._folder, StoreMeta(built_with=built_with))
            self._opened()

    def upsert(self, points: Sequence[ChunkPoint], tenant: str) -> None:
        _, meta = self._ready()
        fresh = [
            edge.Point(point.chunk.chunk_id, schema.vectors_of(point, _sparse), schema.payload_of(point, tenant))
            for point in schema.checked(points, meta.built_with)
        ]
        self._write(*(edge.UpdateOperation.upsert_points(batch) for batch in schema.sliced(fresh, schema.WRITE_BATCH)))

    def delete(self, flt: models.Filter) -> None:
        converted = edge_filter(flt)
        if self._opened() is not None and converted is not None:
            self._write(edge.UpdateOperation.delete_points_by_filter(converted))

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        shard, meta = self._ready()
        converted = [edge_query(request) for request in requests]
        with _edge_errors("searching"):
            answers = shard.query_batch(edge.QueryBatchRequest(converted))
        numbered = [_numbered(answer) for answer in answers]
        known = self._payloads(shard, meta.index_version, [one for answer in numbered for one in answer])
        return [
            schema.best_first(
                schema.with_payload(record, known[number], record.score) for number, _, record in of if number in known
            )
            for of in numbered
        ]

    def lookup(self, flt: models.Filter, limit: int, vectors: bool = False) -> list[Hit]:
        shard, meta = self._ready()
        records, _ = self._page(flt, limit, False, None, vectors)
        numbered = _numbered(records)
        known = self._payloads(shard, meta.index_version, numbered)
        return [schema.with_payload(record, known[number]) for number, _, record in numbered if number in known]

    def _payloads(self, shard: edge.EdgeShard, version: int, records: Sequence[_Numbered]) -> dict[int, Hit]:
        """The chunks of records that came without payload. What was read at one version is not read again."""
        if self._read_at != version:
            self._read, self._read_at = ByteCache(_READ_BYTES), version
        memory = self._read
        ids = {number: chunk_id for number, chunk_id, _ in records}
        known = memory.find(ids)
        if missing := [chunk_id for number, chunk_id in ids.items() if number not in known]:
            with _edge_errors("reading"):
                stored = shard.retrieve([*missing], True, False)
            for number, _, record in _numbered(stored):
                known[number] = hit = schema.hit_of(record)
                memory.keep(number, hit, 2 * len(hit.text) + _HIT_BYTES)
        return known

    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]:
        shard, _ = self._ready()
        with _edge_errors("counting"):
            found = shard.facet(edge.FacetRequest(key=field, limit=limit, filter=edge_filter(flt)))
        return {str(hit.value): hit.count for hit in found.hits}

    def set_sparse(self, vectors: Mapping[str, SparseVector]) -> None:
        shard, _ = self._ready()
        with self._writing:
            for ids in schema.sliced(list(vectors), schema.WRITE_BATCH):
                with _edge_errors("reading ids"):
                    stored = [str(record.id) for record in shard.retrieve([*ids], False, False)]
                self._write(*_sparse_updates({chunk_id: vectors[chunk_id] for chunk_id in stored}))
            self._record(self._ready()[1].written())  # also where no vector changed, but the length did

    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        for batch in schema.sliced(schema.grouped(changes), schema.WRITE_BATCH):
            self._write(
                *(
                    edge.UpdateOperation.set_payload_by_filter(converted, payload)
                    for payload, ids in batch
                    if (converted := edge_filter(schema.of_chunks(ids))) is not None
                )
            )

    def remember(self, tenant: str, note: TenantNote) -> None:
        with self._writing:
            meta = self._ready()[1]
            self._record(meta.model_copy(update={"tenants": {**meta.tenants, tenant: note}}))

    def flush(self) -> None:
        with self._writing:
            shard = self._opened()
            if shard is not None and self._meta is not None:
                with _edge_errors("writing to disk"):
                    shard.flush()
                write_meta(self._folder, self._meta, durable=True)

    def optimize(self) -> None:
        with self._writing:
            if (shard := self._opened()) is not None:
                with _edge_errors("optimising"):
                    shard.optimize()

    def snapshot(self, to: Path) -> SnapshotFile:
        with self._writing:
            self._ready()
            self.flush()
            return archive(self._folder, to)

    def close(self) -> None:
        with self._writing:
            if self._shard is not None and self._owner == os.getpid():
                self.flush()
                with _edge_errors("closing"):
                    self._shard.close()
            self._shard, self._closed = None, True

    def _opened(self) -> edge.EdgeShard | None:
        """The shard; opened now if it has appeared on disk; None when there is no collection yet."""
        if self._closed:
            raise StoreError(f"the store in {self._folder} has been closed")
        if self._owner != os.getpid():
            raise StoreError("the embedded store was opened before a fork: open it in the process that uses it")
        if self._shard is None:
            with self._writing:
                if self._shard is None and self._folder.is_dir() and any(self._folder.iterdir()):
                    meta = read_meta(self._folder)
                    self._meta, self._shard = meta, _load_shard(self._folder)
        return self._shard

    def _ready(self) -> tuple[edge.EdgeShard, StoreMeta]:
        shard = self._opened()
        if shard is None or self._meta is None:
            raise nothing_ingested()
        return shard, self._meta

    def _record(self, meta: StoreMeta) -> None:
        write_meta(self._folder, meta)
        self._meta = meta

    def _write(self, *operations: edge.UpdateOperation) -> None:
        """Apply operations and count them before and after.

        Before: a crash in between leaves no new content under an old version. After: what a reader cached while the
        write went on is not taken for the new content.
        """
        with self._writing:
            shard, meta = self._ready()
            self._record(meta.written())
            for operation in operations:
                with _edge_errors("writing"):
                    shard.update(operation)
            self._record(self._ready()[1].written())

    def raw_page(self, start: str, size: int, *, vectors: bool) -> tuple[Sequence[Any], Any]:
        """Up to `size` records from the id `start` on with payload and, if asked, all vectors, and the next start."""
        if not self._exists():
            return [], None
        shard, _ = self._ready()
        request = edge.ScrollRequest(offset=start or None, limit=size, with_payload=True, with_vector=vectors)
        with _edge_errors("reading"):
            return shard.scroll(request)

    def raw(self, ids: Sequence[str]) -> Sequence[Any]:
        """Those of these records that are stored, with payload and all vectors."""
        shard, _ = self._ready()
        with _edge_errors("reading"):
            return shard.retrieve([*ids], True, True)

    def _exists(self) -> bool:
        return self._opened() is not None

    def _page(
        self, flt: models.Filter | None, size: int, fields: bool | list[str], start: Any, vectors: bool = False
    ) -> tuple[Sequence[Any], Any]:
        shard, _ = self._ready()
        wanted = [DENSE] if vectors else False
        request = edge.ScrollRequest(
            offset=start, limit=size, filter=edge_filter(flt), with_payload=fields, with_vector=wanted
        )
        with _edge_errors("reading"):
            return shard.scroll(request)


def _numbered(records: Iterable[Any]) -> list[_Numbered]:
    """Edge makes a UUID anew each time that a record is asked for its id; a number is found faster than that."""
    return [(chunk_id.int, chunk_id, record) for record in records for chunk_id in (record.id,)]


def _make_shard(folder: Path, meta: StoreMeta) -> None:
    """Make an empty store, complete or not at all: it is built beside `folder` and moved there. Raises: StoreError."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise StoreError(f"no store can be made in {folder.parent}: {error.strerror}") from None
    try:
        (fresh / _SHARD).mkdir()
        with _edge_errors("making an empty shard"):
            shard = edge.EdgeShard.create(str(fresh / _SHARD), _config(meta.built_with))
            _index_missing(shard)
            shard.flush()
            shard.close()
        write_meta(fresh, meta, durable=True)
        fresh.rename(folder)
    except OSError:
        raise StoreError(f"there is already something in {folder}: use it, or move it away") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _load_shard(folder: Path) -> edge.EdgeShard:
    """Open the shard, locked by its write-ahead log. Raises: StoreInUseError, StoreError when it is damaged."""
    path = folder / _SHARD
    if not (path / "segments").is_dir():
        # Edge would quietly start an empty one
        raise unusable(folder, "its segments are missing")
    try:
        with _edge_errors("opening"):
            shard = edge.EdgeShard.load(str(path))
            _index_missing(shard)
            return shard
    except StoreError as error:
        if "WouldBlock" in str(error):
            raise StoreInUseError(
                f"the store in {folder} is in use by another process; only the search worker may open it: "
                "stop the other one (`ramify down`) or ask it instead"
            ) from None
        lines = str(error.__cause__).strip().splitlines()
        raise unusable(folder, lines[0][:200] if lines else "no reason given") from error


def _index_missing(shard: edge.EdgeShard) -> None:
    """Make the payload indexes that the shard lacks: all of a new one, the later ones of an older store."""
    present = shard.info().payload_schema
    for field in schema.INDEXED:
        if field.name not in present:
            shard.update(edge.UpdateOperation.create_field_index(field.name, _index(field)))


def _config(built_with: BuiltWith) -> edge.EdgeConfig:
    sparse = (SPARSE, TRIGRAM) if built_with.trigrams else (SPARSE,)
    dense = {DENSE: edge.EdgeVectorParams(built_with.dim, edge.Distance.Cosine)} if built_with.dim else {}
    return edge.EdgeConfig(
        vectors=dense,
        sparse_vectors={name: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf) for name in sparse},
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_INDEXING_THRESHOLD_KB),
        wal_enabled=True,  # the only lock, and what survives a kill
    )


def _index(field: schema.IndexedField) -> edge.KeywordIndexParams | edge.IntegerIndexParams:
    if field.kind == "integer":
        return edge.IntegerIndexParams(lookup=False, range=True, enable_hnsw=False)
    if field.tenant:
        return edge.KeywordIndexParams(is_tenant=True)
    return edge.KeywordIndexParams(prefix=field.prefix or None, enable_hnsw=False)


def _sparse(vector: SparseVector) -> edge.SparseVector:
    return edge.SparseVector(list(vector.indices), list(vector.values))


def _sparse_updates(vectors: Mapping[str, SparseVector]) -> Iterator[edge.UpdateOperation]:
    full = [edge.PointVectors(chunk_id, {SPARSE: _sparse(vector)}) for chunk_id, vector in vectors.items() if vector]
    if full:
        yield edge.UpdateOperation.update_vectors(full)
    if empty := [chunk_id for chunk_id, vector in vectors.items() if not vector]:
        yield edge.UpdateOperation.delete_vectors([*empty], [SPARSE])
