"""The one schema of both engines: payload fields with their indexes, chunks to payloads and back, filters. Pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import ValidationError
from qdrant_client import models

from shared.errors import InputError, StoreError
from shared.models import Chunk, Filters, Hit
from shared.providers.encoders.base import SparseVector
from shared.store.base import DENSE, SPARSE, TRIGRAM, BuiltWith, ChunkPoint
from shared.store.texts import BETWEEN, packed


class IndexedField(NamedTuple):
    """A payload field with an index. Only those that bound every search get HNSW links: they cost most of a build."""

    name: str
    kind: Literal["keyword", "integer"]
    tenant: bool = False
    prefix: bool = False


#: The payload field that says whose chunk it is. No model of a chunk has it: only ChunkStore writes and asks it.
TENANT = "tenant"
#: `day` is the date as a day number (date.toordinal): one range type that both engines read alike.
INDEXED = (
    IndexedField(TENANT, "keyword", tenant=True),
    IndexedField("namespace", "keyword", tenant=True),
    IndexedField("doc_id", "keyword"),
    IndexedField("source", "keyword"),
    IndexedField("tags", "keyword"),
    IndexedField("kind", "keyword"),
    IndexedField("path", "keyword", prefix=True),
    IndexedField("day", "integer"),
    IndexedField("part", "keyword"),
    IndexedField("defines", "keyword"),
    IndexedField("refs", "keyword"),
    IndexedField("mentions", "keyword"),
    IndexedField("ordinal", "integer"),
    IndexedField("pending", "integer"),
    IndexedField("unit", "keyword"),
    IndexedField("file_id", "keyword"),
    IndexedField("fields", "keyword", prefix=True),
)
#: What of a chunk only lists read, off the stored payload: a hit would carry it through all of a search for nothing.
LISTED = frozenset({"definitions", "imports"})
CHUNK_FIELDS = frozenset(Chunk.model_fields) - {"chunk_id", "version"} - LISTED
#: Digits of a document's hash that a hit has as its `version`.
_VERSION_DIGITS = 16
#: The payload field of a first chunk that says what is known of the whole document (`DocumentSize`).
DOCUMENT = "document"
#: What ChunkStore reads of a chunk for `document_hashes`, `origins` and `documents`.
DOCUMENT_FIELDS = ("doc_id", "document_hash", "ordinal", "path", "source")
#: What many chunks do not have, and is not stored then: an engine takes longer for each field than for its value.
_OFTEN_EMPTY = ("places", "spans", "heading", "tags", "refs", "mentions", "imports", "superseded")
#: Chunks of one write; reads get in between writes.
WRITE_BATCH = 256
#: Chunks of one request where only a few fields are read.
READ_BATCH = 1000

Payload = Mapping[str, Any]
_T = TypeVar("_T")


def payload_of(point: ChunkPoint, tenant: str) -> dict[str, Any]:
    """What is stored beside the vectors: the chunk's fields, the point's, its tenant, and `day` if it has a date.

    Raises: InputError when the date is not YYYY-MM-DD.
    """
    chunk = point.chunk
    empty = (name for name in _OFTEN_EMPTY if not getattr(chunk, name))
    payload = chunk.model_dump(mode="json", exclude={"chunk_id", "version", "boxes", *empty})
    if chunk.boxes:  # as one text: an engine takes as long for each number of a list
        payload["boxes"] = json.dumps(chunk.boxes, separators=(",", ":"))
    payload |= {TENANT: tenant, "document_hash": point.document_hash, "source": point.source}
    payload["pending"] = int(point.pending)
    payload |= {name: list(given) for name in ("unfollowed", "sought") if (given := getattr(point, name))}
    payload |= {"fields": list(point.fields)} if point.fields else {}
    payload |= {DOCUMENT: point.size.model_dump()} if point.size else {}
    payload |= {BETWEEN: packed(point.between)} if point.between else {}
    payload |= {"unit": point.unit, "unit_size": point.unit_size} if point.unit else {}
    payload |= {"file_id": point.file_id} if point.file_id else {}
    if chunk.date is not None:
        try:
            payload["day"] = date.fromisoformat(chunk.date).toordinal()
        except ValueError:
            raise InputError("date", chunk.date, "give YYYY-MM-DD or leave it out") from None
    return payload


def vectors_of(point: ChunkPoint, sparse: Callable[[SparseVector], Any]) -> dict[str, Any]:
    """The vectors of a point by name, empty ones left out; `sparse` makes the engine's sparse vectors."""
    vectors = {name: sparse(given) for name, given in ((SPARSE, point.sparse), (TRIGRAM, point.trigrams)) if given}
    return vectors | ({DENSE: list(point.dense)} if point.dense else {})


def hit_of(record: Any, score: float = 0.0) -> Hit:
    """A stored chunk (`id`, `payload`, `vector` of either engine) as a hit; fields that a hit does not know are left.

    Raises: StoreError when the payload was not written by Ramify.
    """
    payload = record.payload or {}
    fields = {name: value for name, value in payload.items() if name in CHUNK_FIELDS}
    version = str(payload.get("document_hash", ""))[:_VERSION_DIGITS]
    dense = record.vector.get(DENSE) if isinstance(record.vector, dict) else None
    try:
        vector = () if dense is None else tuple(dense)
        return Hit(chunk_id=str(record.id), score=score, vector=vector, version=version, **fields)
    except ValidationError as error:
        fault = error.errors()[0]
        raise StoreError(
            f"point {record.id} is no chunk of Ramify ({'.'.join(map(str, fault['loc']))}: {fault['msg']}): "
            "use a collection of its own"
        ) from None


def with_payload(record: Any, stored: Hit, score: float = 0.0) -> Hit:
    """A record that came without its payload as a hit; `stored` is its chunk."""
    dense = record.vector.get(DENSE) if isinstance(record.vector, dict) else None
    return stored.but(score=float(score), parts={}, vector=() if dense is None else tuple(dense))


def best_first(hits: Iterable[Hit]) -> list[Hit]:
    """An engine's answer in order; ties by chunk id, since the engines order them differently."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))


def checked(points: Sequence[ChunkPoint], built_with: BuiltWith) -> list[ChunkPoint]:
    """`points` in the order of writing: a document's first chunk last, so that a torn write is seen (`hashes_of`).

    Raises: StoreError when an id is no UUID or a dense vector does not fit the collection.
    """
    for point in points:
        try:
            uuid.UUID(point.chunk.chunk_id)
        except ValueError:
            raise StoreError(f"chunk_id {point.chunk.chunk_id!r} cannot be stored: it must be a UUID") from None
        if point.dense and len(point.dense) != built_with.dim:
            raise StoreError(
                f"chunk {point.chunk.chunk_id} has a dense vector of {len(point.dense)} numbers, but the collection "
                f"was made for {built_with.dim}: ingest into a new collection (store.collection)"
            )
    return sorted(points, key=lambda point: -point.chunk.ordinal)


def hashes_of(payloads: Iterable[Payload]) -> dict[str, str]:
    """doc_id -> hash of completely stored documents.

    A document whose first chunk is missing, or whose chunks carry different hashes, was torn by a crash: it is left
    out, so that it is ingested again.
    """
    hashes: dict[str, set[str]] = {}
    begun: set[str] = set()
    for payload in payloads:
        hashes.setdefault(payload["doc_id"], set()).add(payload["document_hash"])
        if payload["ordinal"] == 0:
            begun.add(payload["doc_id"])
    return {doc_id: next(iter(found)) for doc_id, found in hashes.items() if len(found) == 1 and doc_id in begun}


def grouped(changes: Mapping[str, Payload]) -> list[tuple[dict[str, Any], list[str]]]:
    """Payload changes with the ids that get them, so that equal ones are written together."""
    groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for chunk_id, payload in changes.items():
        groups.setdefault(json.dumps(dict(payload), sort_keys=True), (dict(payload), []))[1].append(chunk_id)
    return [(fields, ids) for fields, all_ids in groups.values() for ids in sliced(all_ids, READ_BATCH)]


def sliced(items: Sequence[_T], size: int) -> Iterator[list[_T]]:
    """`items` in lists of at most `size`."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


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
