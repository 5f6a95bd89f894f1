"""What a chunk store can do and what goes in and out. Knows no engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Protocol

from pydantic import Field
from qdrant_client import models

from shared.models import Chunk, Hit
from shared.models.base import Model
from shared.providers.encoders.base import SparseVector

#: Vector names of every collection.
SPARSE = "bm25"
DENSE = "dense"
TRIGRAM = "trigram"


class BuiltWith(Model):
    """The encoders that a collection was built with. `avg_len` in tokens; `dense` None and `dim` 0: BM25 alone."""

    sparse: str
    avg_len: float = Field(gt=0)
    dense: str | None = None
    dim: int = Field(default=0, ge=0)
    trigrams: str | None = None


class Pending(IntEnum):
    """What of a chunk is still to be joined with the rest of the corpus at the end of an ingest.

    CHUNK: its mentions, and the backlinks of its document; PAGE: also its title is to be sought in every other chunk.
    """

    NOTHING = 0
    CHUNK = 1
    PAGE = 2


class ChunkPoint(Model):
    """A chunk with its vectors, ready to store. `source` is the root it was ingested from, the scope of a prune.

    `pending` is written with the chunk, so that it survives a crash. `common` are names of its page that stand in too
    many chunks to lead there. `unit` and `unit_size` say what it was read from (see shared.store.documents).
    """

    chunk: Chunk
    document_hash: str
    source: str
    sparse: SparseVector
    dense: tuple[float, ...] = ()
    trigrams: SparseVector = SparseVector(indices=(), values=())
    pending: Pending = Pending.NOTHING
    common: tuple[str, ...] = ()
    unit: str = ""
    unit_size: int = Field(default=1, ge=1)


class CollectionInfo(Model):
    """What a tenant has in a collection. `index_version` grows with every write, so a cache key can name what it saw.

    `built_with.avg_len` is the tenant's own; `new`: it has none yet, for it never wrote anything (see `create`).
    `finished` names the state that its last ingest left when it came to its end (`mark_finished`).
    """

    built_with: BuiltWith
    points: int = Field(ge=0)
    index_version: int = Field(ge=0)
    finished: str = ""
    new: bool = False


class TenantNote(Model):
    """What a collection remembers of a tenant besides its chunks. `avg_len` in tokens; None: the collection's."""

    finished: str = ""
    avg_len: float | None = Field(default=None, gt=0)


class CollectionState(Model):
    """A whole collection, all tenants together: for the operator, and for what is made for one tenant of it."""

    built_with: BuiltWith
    points: int = Field(ge=0)
    index_version: int = Field(ge=0)
    tenants: dict[str, TenantNote] = Field(default_factory=dict)

    def note(self, tenant: str) -> TenantNote:
        """What is remembered of a tenant."""
        return self.tenants.get(tenant, TenantNote())


class Collection(Protocol):
    """All chunks of all tenants: what an engine does. Only `shared.store` may hold one; others get a ChunkStore.

    Methods are as in ChunkStore where it has them, and raise the same.
    """

    def info(self) -> CollectionState | None: ...
    def create(self, built_with: BuiltWith) -> None: ...
    def upsert(self, points: Sequence[ChunkPoint], tenant: str) -> None:
        """Add or replace chunks by `chunk_id`, as chunks of `tenant`."""
        ...

    def delete(self, flt: models.Filter) -> None:
        """Remove all matching chunks; nothing to do while there is no collection."""
        ...

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]: ...
    def scroll(self, flt: models.Filter | None, batch: int = 256) -> Iterator[list[Hit]]: ...
    def read(
        self, flt: models.Filter | None, fields: Sequence[str], start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]: ...
    def count(self, flt: models.Filter | None) -> int: ...
    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None: ...
    def lookup(self, flt: models.Filter, limit: int, vectors: bool = False) -> list[Hit]: ...
    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]: ...
    def set_sparse(self, vectors: Mapping[str, SparseVector]) -> None:
        """Replace sparse vectors by chunk id; ids that are gone are passed over."""
        ...

    def remember(self, tenant: str, note: TenantNote) -> None:
        """Replace what is remembered of a tenant. No write: the index version stays."""
        ...

    def flush(self) -> None: ...
    def optimize(self) -> None: ...
    def close(self) -> None:
        """Let go of the collection. Safe to call twice."""
        ...


class ChunkStore(Protocol):
    """The chunks of one tenant and their vectors. What other tenants have in the same collection is not there.

    Reads may come from many threads; writes are put in line. Every method raises StoreError when the store cannot
    do it for good, and TransientError when it may work later.
    """

    @property
    def tenant(self) -> str:
        """Whose chunks these are."""
        ...

    def info(self) -> CollectionInfo | None:
        """What is stored; None when there is no collection yet."""
        ...

    def create(self, built_with: BuiltWith) -> None:
        """Make the empty collection with its vectors and payload indexes, or join the one that other tenants have.

        Raises: StoreError when the tenant has chunks there already, or when it was built with other encoders.
        """
        ...

    def upsert(self, points: Sequence[ChunkPoint]) -> None:
        """Add or replace chunks by `chunk_id` (a UUID)."""
        ...

    def delete_chunks(self, doc_id: str, keep: Sequence[str]) -> None:
        """Remove the chunks of a document except those whose ids are in `keep`."""
        ...

    def delete_documents(self, doc_ids: Sequence[str]) -> None:
        """Remove all chunks of these documents."""
        ...

    def document_hashes(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """doc_id -> content hash, for those of `doc_ids` that are stored."""
        ...

    def origins(self, doc_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """doc_id -> (source, path) under which it was ingested, for those of `doc_ids` that are stored."""
        ...

    def documents(self, source: str) -> dict[str, str]:
        """doc_id -> path of everything ingested from `source`."""
        ...

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        """Hits of each request, best first, ties by chunk id, in one batched call.

        A request without a query gives the first matching chunks by id, all with the same score.
        """
        ...

    def scroll(self, flt: models.Filter | None, batch: int = 256) -> Iterator[list[Hit]]:
        """All matching chunks in pages of `batch`, ordered by id, with score 0."""
        ...

    def read(
        self, flt: models.Filter | None, fields: Sequence[str], start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """chunk_id and the named payload fields of all matching chunks, ordered by id; none without a collection.

        `start` and `stop` bound the ids (UUIDs): from the first, without the second.
        """
        ...

    def count(self, flt: models.Filter | None) -> int:
        """How many chunks match, exactly; 0 without a collection."""
        ...

    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Set payload fields by chunk id; the other fields stay, and ids that are gone are passed over."""
        ...

    def lookup(self, flt: models.Filter, limit: int, vectors: bool = False) -> list[Hit]:
        """Up to `limit` matching chunks in one call, ordered by id, with score 0.

        `vectors` gives them their dense vectors; ask for them only where the collection has some (`BuiltWith.dim`).
        """
        ...

    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]:
        """How many matching chunks hold each value of a keyword `field`: the `limit` most frequent values.

        Chunks that are being written may count twice: exact counts cost ten times as much (measured).
        """
        ...

    def set_sparse(self, vectors: Mapping[str, SparseVector], avg_len: float) -> None:
        """Replace sparse vectors by chunk id and record the `avg_len` (tokens) they were made with as the tenant's."""
        ...

    def set_backlinks(self, counts: Mapping[str, int]) -> None:
        """Set `Chunk.backlinks` by doc_id; other documents keep theirs. Writes only what is stored differently."""
        ...

    def mark_finished(self, state: str) -> None:
        """Record that an ingest of the tenant came to its end with this state. No write: the index version stays."""
        ...

    def flush(self) -> None:
        """Return once everything written is on disk."""
        ...

    def optimize(self) -> None:
        """Tidy segments and build indexes; may take seconds."""
        ...
