"""What goes into a chunk store and what it says of itself. Knows no engine."""

from __future__ import annotations

from enum import IntEnum

from pydantic import Field

from shared.models import Chunk
from shared.models.base import Model
from shared.models.corpus import DocumentSize
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

    CHUNK: its mentions, and the backlinks of its document.
    """

    NOTHING = 0
    CHUNK = 1


class ChunkPoint(Model):
    """A chunk with its vectors, ready to store. `source` is the root it was ingested from, the scope of a prune.

    `pending` is written with the chunk, so that it survives a crash. `unfollowed` are titles in its prose that lead
    nowhere, since too many chunks hold them or this one holds too many; `sought` are the names of its page that every
    other chunk has been searched for. `fields` are what its document says in lines of name and value, on its first
    chunk (see `shared.language.document_fields`). `unit` and `unit_size` say what it was read from (see
    `shared.store.units`). `between` is what of the document's text no chunk holds and follows this one, with its
    offset. `size` is that of its document, on the first chunk. `file_id` is the id of the file that its document is a
    part of.
    """

    chunk: Chunk
    document_hash: str
    source: str
    sparse: SparseVector
    dense: tuple[float, ...] = ()
    trigrams: SparseVector = SparseVector(indices=(), values=())
    pending: Pending = Pending.NOTHING
    unfollowed: tuple[str, ...] = ()
    sought: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    unit: str = ""
    unit_size: int = Field(default=1, ge=1)
    file_id: str = ""
    between: tuple[tuple[int, str], ...] = ()
    size: DocumentSize | None = None


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
    """What a collection stores of a tenant besides its chunks. `avg_len` in tokens; None: the collection's."""

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
