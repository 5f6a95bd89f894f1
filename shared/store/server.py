"""Chunks on a Qdrant server (or cluster) over REST. The same schema as the embedded store."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from shared.errors import RamifyError, StoreError, TransientError, shown
from shared.models import Hit
from shared.providers.encoders.base import SparseVector
from shared.providers.gates import GateError
from shared.store import schema
from shared.store.base import DENSE, SPARSE, TRIGRAM, BuiltWith, ChunkPoint, CollectionState, TenantNote
from shared.store.collection import Collection, nothing_ingested
from shared.store.schema import to_sparse
from shared.tenants import DEFAULT_TENANT

_AUTH = {401, 403}
#: The top-level fields of every answer of Qdrant.
_ENVELOPE = {"result", "status", "time", "usage"}
#: Keys of the metadata that hold a note of a tenant begin so: each is replaced alone, so two workers lose nothing.
_NOTE = "tenant:"


@contextmanager
def _server_errors(doing: str) -> Iterator[None]:
    """Raises TransientError for what may pass, StoreError for the rest; both say what was being done.

    What may pass was found and tried again by the transport: no connection, 408, 429, 5xx, half an answer.
    """
    try:
        yield
    except UnexpectedResponse as error:
        raise _refused(error, doing) from error
    except ResponseHandlingException as error:
        raise _failed(error.source, doing) from error
    except json.JSONDecodeError as error:
        if error.doc.lstrip().startswith("{"):
            raise TransientError(f"Qdrant sent half an answer while {doing}") from error
        raise _not_qdrant(doing) from error
    except AssertionError as error:
        if "returned None" not in str(error):  # qdrant-client raises this when an answer holds no result
            raise
        raise _malformed(doing, "it holds no result") from error
    except ValueError as error:  # the client's own checks
        raise StoreError(f"Qdrant cannot do this ({doing}): {shown(str(error))}") from error


class ServerStore(Collection):
    """A Collection of a Qdrant server. BuiltWith, the index version and tenants' notes stand in its metadata."""

    def __init__(self, client: QdrantClient, collection: str, indexed: bool = True) -> None:
        """`indexed` False makes no payload indexes: the client's local mode has none."""
        self._client = client
        self._collection = collection
        self._indexed = indexed
        self._complete = not indexed

    def info(self) -> CollectionState | None:
        if not self._exists():
            return None
        with _server_errors("reading the collection"):
            metadata = self._client.get_collection(self._collection).config.metadata or {}
            points = self._client.count(self._collection, exact=True).count
        try:
            built_with = BuiltWith.model_validate(metadata["built_with"])
            version, notes = metadata["index_version"], _notes(metadata)
            return CollectionState(built_with=built_with, points=points, index_version=version, tenants=notes)
        except (KeyError, ValidationError):
            raise StoreError(
                f"the Qdrant collection {self._collection} was not made by Ramify or not finished: "
                "choose another store.collection, or delete it"
            ) from None

    def count(self, flt: models.Filter | None) -> int:
        with _server_errors("counting"):
            return self._client.count(self._collection, flt, exact=True).count if self._exists() else 0

    def create(self, built_with: BuiltWith) -> None:
        if self.info() is not None:
            raise StoreError(f"the Qdrant collection {self._collection} exists already: use it, or delete it")
        sparse = (SPARSE, TRIGRAM) if built_with.trigrams else (SPARSE,)
        dense = models.VectorParams(size=built_with.dim, distance=models.Distance.COSINE) if built_with.dim else None
        with _server_errors("creating the collection"):
            self._client.create_collection(
                self._collection,
                vectors_config={DENSE: dense} if dense else {},
                sparse_vectors_config={
                    name: models.SparseVectorParams(modifier=models.Modifier.IDF) for name in sparse
                },
            )
            self._index(schema.INDEXED)
            # last: a collection without it was not finished
            self._record(built_with=built_with.model_dump())

    def upsert(self, points: Sequence[ChunkPoint], tenant: str) -> None:
        built_with = self._built_with()
        ready = [
            models.PointStruct(
                id=point.chunk.chunk_id,
                vector=schema.vectors_of(point, to_sparse),
                payload=schema.payload_of(point, tenant),
            )
            for point in schema.checked(points, built_with)
        ]
        self._index_missing()
        with _server_errors("writing"), self._counted():
            for batch in schema.sliced(ready, schema.WRITE_BATCH):
                self._client.upsert(self._collection, batch, wait=True)

    def delete(self, flt: models.Filter) -> None:
        if not self._exists():
            return
        with _server_errors("deleting"), self._counted():
            self._client.delete(self._collection, models.FilterSelector(filter=flt), wait=True)

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        if not requests:
            return []
        full = [request.model_copy(update={"with_payload": True}) for request in requests]
        with _server_errors("searching"):
            answers = self._client.query_batch_points(self._collection, full)
        return [schema.ranked(answer.points) for answer in answers]

    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]:
        with _server_errors("counting"):
            found = self._client.facet(self._collection, field, facet_filter=flt, limit=limit)
        return {str(hit.value): hit.count for hit in found.hits}

    def set_sparse(self, vectors: Mapping[str, SparseVector]) -> None:
        self._built_with()
        with _server_errors("replacing sparse vectors"), self._counted():
            for ids in schema.sliced(list(vectors), schema.WRITE_BATCH):
                found = self._client.retrieve(self._collection, ids, with_payload=False)
                stored = [str(record.id) for record in found]
                full = [models.PointVectors(id=i, vector={SPARSE: to_sparse(vectors[i])}) for i in stored if vectors[i]]
                empty: list[Any] = [i for i in stored if not vectors[i]]
                if full:
                    self._client.update_vectors(self._collection, full, wait=True)
                if empty:
                    self._client.delete_vectors(self._collection, [SPARSE], empty, wait=True)

    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        self._built_with()
        self._index_missing()
        for batch in schema.sliced(schema.grouped(changes), schema.WRITE_BATCH):
            updates = [
                models.SetPayloadOperation(set_payload=models.SetPayload(payload=payload, filter=schema.of_chunks(ids)))
                for payload, ids in batch
            ]
            with _server_errors("writing payloads"), self._counted():
                self._client.batch_update_points(self._collection, updates, wait=True)

    def remember(self, tenant: str, note: TenantNote) -> None:
        with _server_errors("recording what is known of a tenant"):
            self._client.update_collection(self._collection, metadata={f"{_NOTE}{tenant}": note.model_dump()})

    def flush(self) -> None:
        """Nothing to do: every write waits until the server has it in its log."""

    def optimize(self) -> None:
        """Nothing to do: the server optimises by itself."""

    def close(self) -> None:
        self._client.close()

    def _index(self, fields: Sequence[schema.IndexedField]) -> None:
        for field in fields if self._indexed else ():
            self._client.create_payload_index(self._collection, field.name, _index(field), wait=True)

    def _index_missing(self) -> None:
        """A collection of an older release gets the indexes that it lacks, once, before the first write."""
        if self._complete:
            return
        with _server_errors("making payload indexes"):
            present = self._client.get_collection(self._collection).payload_schema
            self._index([field for field in schema.INDEXED if field.name not in present])
        self._complete = True

    def _built_with(self) -> BuiltWith:
        info = self.info()
        if info is None:
            raise nothing_ingested()
        return info.built_with

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """A new index version before and after a write, for the reasons of EmbeddedStore._write."""
        self._record()
        yield
        self._record()

    def _record(self, **more: object) -> None:
        # The clock instead of a count: several index workers write, and none of them reads before.
        self._client.update_collection(self._collection, metadata={"index_version": time.time_ns(), **more})

    def _exists(self) -> bool:
        with _server_errors("reading the collection"):
            return self._client.collection_exists(self._collection)

    def _page(
        self, flt: models.Filter | None, size: int, fields: bool | list[str], start: Any, vectors: bool = False
    ) -> tuple[Sequence[Any], Any]:
        wanted = [DENSE] if vectors else False
        with _server_errors("reading"):
            return self._client.scroll(
                self._collection, flt, size, offset=start, with_payload=fields, with_vectors=wanted
            )


def _notes(metadata: Mapping[str, Any]) -> dict[str, TenantNote]:
    """What is noted of each tenant. A `finished` without a tenant (older releases) belongs to the tenant `default`."""
    old = {DEFAULT_TENANT: {"finished": metadata["finished"]}} if "finished" in metadata else {}
    new = {name.removeprefix(_NOTE): note for name, note in metadata.items() if name.startswith(_NOTE)}
    return {tenant: TenantNote.model_validate(note) for tenant, note in {**old, **new}.items()}


def _index(field: schema.IndexedField) -> models.KeywordIndexParams | models.IntegerIndexParams:
    if field.kind == "integer":
        kind = models.IntegerIndexType.INTEGER
        return models.IntegerIndexParams(type=kind, lookup=False, range=True, enable_hnsw=False)
    keyword = models.KeywordIndexType.KEYWORD
    if field.tenant:
        return models.KeywordIndexParams(type=keyword, is_tenant=True)
    return models.KeywordIndexParams(type=keyword, prefix=field.prefix or None, enable_hnsw=False)


def _failed(source: Exception, doing: str) -> RamifyError:
    if isinstance(source, GateError):
        return source
    if isinstance(source, RamifyError):  # a sentence with a colon gets what was being done before that
        sentence, colon, rest = str(source).partition(": ")
        source.args = (f"{sentence} while {doing}{colon}{rest}",)
        return source
    if isinstance(source, ValidationError):
        first = source.errors(include_url=False, include_input=False)[0]
        place = [str(part) for part in first["loc"][1:]]
        if place and place[0] in _ENVELOPE:
            return _malformed(doing, shown(f"{'.'.join(place)}: {first['msg']}"))
        return _not_qdrant(doing)
    return StoreError(f"Qdrant cannot be asked ({doing}): {shown(str(source))}")


def _malformed(doing: str, what: str) -> StoreError:
    return StoreError(
        f"Qdrant's answer while {doing} is not of the shape that this client knows ({what}): "
        "check that store.url leads to a Qdrant server, and its version"
    )


def _not_qdrant(doing: str) -> StoreError:
    return StoreError(f"what answers at store.url is no Qdrant server this client knows ({doing}): check the URL")


def _refused(error: UnexpectedResponse, doing: str) -> RamifyError:
    status = error.status_code or 0
    if status in _AUTH:
        return StoreError(f"Qdrant refuses the API key ({status}): set store.api_key")
    reason = shown(error.content.decode("utf-8", "replace"))
    return StoreError(f"Qdrant refused the request ({status}) while {doing}: {reason}")
