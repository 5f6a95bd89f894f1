"""A batch's way into the store: read, skip what is unchanged, chunk, encode, write. Knows no queue and no Redis."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from shared.encoders import DenseEncoder, SparseEncoder, SparseVector
from shared.encoders.trigram import TrigramEncoder
from shared.errors import StoreError
from shared.models import Chunk, Cost, DocumentOutcome, DocumentStatus, RawDocument
from shared.settings import Settings
from shared.store import BuiltWith, ChunkPoint, ChunkStore, check_built_with
from workers.index.chunking import chunk_document
from workers.index.documents import Document, document_hash, prune_scope
from workers.index.drift import SparseFactory, refit
from workers.index.encoding import EncoderError, dense_vectors, encoder_errors, mean_length, passage
from workers.index.home import at_home
from workers.index.links import link_counts
from workers.index.readers import read_documents

_NONE = SparseVector(indices=(), values=())
_TWICE = "its id stands more than once in this batch: the last one counts"


@dataclass(frozen=True, slots=True)
class _Change:
    """A document to write; `known` when the store has an older form of it."""

    document: Document
    content_hash: str
    chunks: tuple[Chunk, ...]
    known: bool


class _Encoders(NamedTuple):
    """What the collection's keyword vectors are made with; no trigrams: it was built without."""

    sparse: SparseEncoder
    trigrams: TrigramEncoder | None


class Indexer:
    """Puts documents into one store. One for a process; its methods may be called from many threads."""

    def __init__(
        self, store: ChunkStore, sparse_factory: SparseFactory, dense: DenseEncoder | None, settings: Settings
    ) -> None:
        self._store, self._sparse, self._dense, self._sizes = store, sparse_factory, dense, settings.chunking
        self._with_trigrams = settings.search.trigrams
        # Two first batches must not both create the collection, nor two writes of a document mix their chunks.
        self._writing = Lock()
        self._linked_at: int | None = None  # the index version whose links are counted

    def index(self, batch: Sequence[RawDocument]) -> tuple[list[DocumentOutcome], Cost]:
        """Outcomes in the order of the batch (several for a JSONL file), and what the encoder cost. Durable on return.

        What cannot be read or encoded is a failed outcome and keeps what the store has of it. A batch may be given
        again: what is written already is unchanged then.
        Raises: StoreMismatchError, StoreError or TransientError of the store.
        """
        read = [item for raw in batch for item in read_documents(raw, self._sizes.max_document_bytes)]
        read, twice = _last_of_each(read)
        documents = [item for item in read if isinstance(item, Document)]
        done: dict[str, DocumentOutcome] = {}
        cost = Cost()
        try:
            existing = self._existing()
            if existing:
                read = at_home(read, self._store.origins([document.doc_id for document in documents]))
                documents = [item for item in read if isinstance(item, Document)]
            changes = self._changes(documents, existing is not None, done)
            points, cost = self._encode(changes, existing)
            self._write(changes, points)
            done |= {change.document.doc_id: _written(change) for change in changes}
        except EncoderError as error:
            done = {document.doc_id: _failed(document, str(error)) for document in documents} | done
        outcomes = [done[item.doc_id] if isinstance(item, Document) else item for item in read]
        return [_noted(outcome, _TWICE) if outcome.doc_id in twice else outcome for outcome in outcomes], cost

    def finish(
        self,
        prune: Mapping[str, Collection[str]] | None = None,
        unreadable: Collection[str] = (),
        namespace: str = "default",
    ) -> list[DocumentOutcome]:
        """End an ingest: prune, make sparse vectors anew if lengths drifted, count links, optimise, flush.

        Outcomes are the removed.

        `prune` maps a source to the ids that were seen there, failed ones included; what the store has from that source
        in `namespace` beyond them is removed. `unreadable` are paths of failed outcomes: a document of
        such a file ("path" or "path#id") stays, for a file that cannot be read is not a deleted one.
        Raises: StoreError or TransientError of the store.
        """
        info = self._store.info()
        if info is None:
            return []
        built_with = info.built_with
        with self._writing:
            scopes = {prune_scope(source, namespace): seen for source, seen in (prune or {}).items()}
            removed = [out for scope, seen in scopes.items() for out in self._prune(scope, seen, unreadable)]
            if self._sparse(built_with.avg_len).name == built_with.sparse:
                refit(self._store, self._sparse, built_with.avg_len)
            self._count_links()
        self._store.optimize()
        self._store.flush()
        return removed

    def _changes(self, documents: Sequence[Document], exists: bool, done: dict[str, DocumentOutcome]) -> list[_Change]:
        """What is new or different; the others get their outcome in `done`."""
        stored = self._store.document_hashes([item.doc_id for item in documents]) if exists and documents else {}
        changes = []
        for document in documents:
            content_hash = document_hash(document, self._sizes)
            known = stored.get(document.doc_id)
            if known == content_hash:
                done[document.doc_id] = _outcome(document, DocumentStatus.UNCHANGED)
            elif chunks := chunk_document(document, self._sizes):
                changes.append(_Change(document, content_hash, tuple(chunks), known is not None))
            else:
                done[document.doc_id] = _failed(document, "is empty: it has no text but rules and empty headings")
        return changes

    def _encode(self, changes: Sequence[_Change], existing: _Encoders | None) -> tuple[list[ChunkPoint], Cost]:
        """The points of the changed documents. Dense first: an encoder that fails leaves no empty collection."""
        if not changes:
            return [], Cost()
        chunks = [chunk for change in changes for chunk in change.chunks]
        vectors, cost = dense_vectors(self._dense, chunks)
        encoder, trigrams = existing or self._created(chunks)
        owners = (change for change in changes for _ in change.chunks)
        points = [
            ChunkPoint(
                chunk=chunk,
                document_hash=change.content_hash,
                source=change.document.source,
                sparse=encoder.encode_passage(passage(chunk)),
                dense=vector,
                trigrams=trigrams.encode_passage(passage(chunk)) if trigrams else _NONE,
            )
            for change, chunk, vector in zip(owners, chunks, vectors, strict=True)
        ]
        return points, cost

    def _existing(self) -> _Encoders | None:
        """The keyword encoders of the collection, None before the first batch.

        Raises: StoreMismatchError when the collection was built with other encoders than these.
        """
        info = self._store.info()
        if info is None:
            return None
        encoder = self._sparse(info.built_with.avg_len)
        with encoder_errors():
            check_built_with(info, encoder.name, self._dense)
        return _Encoders(encoder, TrigramEncoder() if info.built_with.trigrams == TrigramEncoder.name else None)

    def _created(self, chunks: Sequence[Chunk]) -> _Encoders:
        """Create the collection, its average length fitted on the first batch, unless another just did."""
        with self._writing:
            if encoders := self._existing():
                return encoders
            encoder = self._sparse(mean_length(self._sparse(1.0), chunks))
            name, dim = (self._dense.name, self._dense.dim) if self._dense else (None, 0)
            trigrams = TrigramEncoder() if self._with_trigrams else None
            built_with = BuiltWith(
                sparse=encoder.name,
                avg_len=encoder.avg_len,
                dense=name,
                dim=dim,
                trigrams=trigrams.name if trigrams else None,
            )
            try:
                self._store.create(built_with)
            except StoreError:
                # On a server, another process may have been first.
                if other := self._existing():
                    return other
                raise
            return _Encoders(encoder, trigrams)

    def _write(self, changes: Sequence[_Change], points: Sequence[ChunkPoint]) -> None:
        """Each document's new chunks, then its stale ones go, so that a search always finds it."""
        if not changes:
            return
        with self._writing:
            # The store does not tell a document that a crash tore from one it never saw: clear what it may have.
            self._store.delete_documents([change.document.doc_id for change in changes if not change.known])
            self._store.upsert(points)
            for change in changes:
                if change.known:
                    self._store.delete_chunks(change.document.doc_id, [chunk.chunk_id for chunk in change.chunks])
            self._store.flush()

    def _count_links(self) -> None:
        """Set every document's backlinks, unless nothing was written since: a scan of all chunks is not free."""
        if self._version() != self._linked_at:
            self._store.set_backlinks(link_counts(hit for page in self._store.scroll(None) for hit in page))
            self._linked_at = self._version()

    def _version(self) -> int | None:
        info = self._store.info()
        return info.index_version if info else None

    def _prune(self, scope: str, seen: Collection[str], unreadable: Collection[str]) -> list[DocumentOutcome]:
        keep, files = set(seen), set(unreadable)
        gone = {
            doc_id: path
            for doc_id, path in self._store.documents(scope).items()
            if doc_id not in keep and path not in files and path.rpartition("#")[0] not in files
        }
        if gone:
            self._store.delete_documents(list(gone))
        return [
            DocumentOutcome(path=path, doc_id=doc_id, status=DocumentStatus.REMOVED) for doc_id, path in gone.items()
        ]


def _last_of_each(
    read: Sequence[Document | DocumentOutcome],
) -> tuple[list[Document | DocumentOutcome], set[str]]:
    """`read` with the last document of each id only, and the ids that stood there more than once."""
    last = {item.doc_id: place for place, item in enumerate(read) if isinstance(item, Document)}
    kept = [item for place, item in enumerate(read) if not isinstance(item, Document) or last[item.doc_id] == place]
    dropped = {
        item.doc_id for place, item in enumerate(read) if isinstance(item, Document) and last[item.doc_id] > place
    }
    return kept, dropped


def _outcome(document: Document, status: DocumentStatus, chunks: int = 0, reason: str = "") -> DocumentOutcome:
    said = "; ".join(part for part in (reason, *document.notes) if part)
    return DocumentOutcome(path=document.path, doc_id=document.doc_id, status=status, chunks=chunks, reason=said)


def _failed(document: Document, reason: str) -> DocumentOutcome:
    return _outcome(document, DocumentStatus.FAILED, reason=reason)


def _written(change: _Change) -> DocumentOutcome:
    status = DocumentStatus.CHANGED if change.known else DocumentStatus.ADDED
    return _outcome(change.document, status, len(change.chunks))


def _noted(outcome: DocumentOutcome, note: str) -> DocumentOutcome:
    reason = f"{outcome.reason}; {note}" if outcome.reason else note
    return outcome.model_copy(update={"reason": reason})
