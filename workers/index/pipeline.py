"""Puts a batch into the store: read, skip what is unchanged, chunk, encode, write. Knows no queue and no Redis."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from types import MappingProxyType
from typing import Any

from shared.errors import InputError, StoreError, TransientError
from shared.models import Chunk, Cost, DocumentOutcome, DocumentStatus, RawDocument
from shared.models.ingest import FileHashes
from shared.providers.encoders import Bm25Encoder, DenseEncoder
from shared.providers.llm.client import LLM
from shared.settings import Settings
from shared.store import ChunkPoint, ChunkStore
from shared.store.schema import of_documents
from workers.index import gone
from workers.index.cutting import CutDocument, cut
from workers.index.directories import Directories
from workers.index.documents import (
    INDEX_VERSION,
    Document,
    document_hash,
    file_id,
    is_elsewhere,
    with_known_origin,
)
from workers.index.edges import mark_lost_links, update_edges, with_pending
from workers.index.encoding import CollectionEncoders, EncoderError, dense_vectors, refit
from workers.index.gone import ReadItems
from workers.index.keywords import KeywordEncoders
from workers.index.maker import Maker
from workers.index.units import Unit, mark_units, split_known, units_of

_parts: ContextVar[dict[str, float] | None] = ContextVar("parts", default=None)
#: Most new chunks of a document that are told one by one.
_MOST_FRESH = 100
#: Seconds between two flushes: they guard against a power cut, and cost more the more is stored.
FLUSH_S = 10.0
#: The fields of a point that most points do not have.
_NOTHING_MORE = {name: field.default for name, field in ChunkPoint.model_fields.items() if not field.is_required()}
TWICE = "its id stands more than once in this batch: the last one counts"


@dataclass(frozen=True, slots=True)
class Change:
    """A document to write; `known` when the store has an older form of it."""

    document: Document
    cut: CutDocument
    known: bool

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Those that it is to have."""
        return self.cut.chunks


def last_of_each(read: Sequence[Document | DocumentOutcome]) -> tuple[list[Document | DocumentOutcome], set[str]]:
    """`read` with the last document of each id only, and the ids that stood there more than once."""
    places = [(item, place) for place, item in enumerate(read) if isinstance(item, Document)]
    last = {item.doc_id: place for item, place in places}
    kept = [item for place, item in enumerate(read) if not isinstance(item, Document) or last[item.doc_id] == place]
    return kept, {item.doc_id for item, place in places if last[item.doc_id] > place}


def last_of_whole(read: Sequence[ReadItems]) -> list[ReadItems]:
    """`read` without the documents of a file that came whole again, later in the batch, and has them no more."""
    last = {file_id(raw): {item.doc_id for item in items} for raw, items in read if raw.whole}
    return [
        (raw, [one for one in items if isinstance(one, DocumentOutcome) or one.doc_id in last[file_id(raw)]])
        if raw.whole
        else (raw, items)
        for raw, items in read
    ]


def outcome_of(document: Document, status: DocumentStatus, chunks: int = 0, reason: str = "") -> DocumentOutcome:
    """What became of `document`; its notes belong to the reason."""
    reason = "; ".join(filter(None, (reason, *document.notes)))
    return DocumentOutcome(path=document.path, doc_id=document.doc_id, status=status, chunks=chunks, reason=reason)


def _failed(document: Document, error: EncoderError) -> DocumentOutcome:
    return outcome_of(document, DocumentStatus.FAILED, reason=str(error))


def _told_twice(outcome: DocumentOutcome) -> DocumentOutcome:
    return outcome.but(reason="; ".join(filter(None, (outcome.reason, TWICE))))


def point_of(change: Change, chunk: Chunk, **fields: Any) -> ChunkPoint:
    """A chunk of `change` as it is stored, unchecked: its parts were validated when they were made."""
    return ChunkPoint.of_valid(
        {
            **_NOTHING_MORE,
            "chunk": chunk,
            "document_hash": change.cut.content_hash,
            "source": change.document.source,
            "file_id": change.document.file_id,
            "fields": () if chunk.ordinal else change.document.fields,
            "size": None if chunk.ordinal else change.cut.size,
            **fields,
        }
    )


@contextmanager
def timings() -> Iterator[dict[str, float]]:
    """Part of an index task -> seconds spent in it inside this context, filled as it runs."""
    parts: dict[str, float] = {}
    token = _parts.set(parts)
    try:
        yield parts
    finally:
        _parts.reset(token)


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Add the time inside to `name` of the enclosing `timings`, if any. Parts are not nested, so that they add up."""
    parts = _parts.get()
    began = time.perf_counter()
    try:
        yield
    finally:
        if parts is not None:
            parts[name] = parts.get(name, 0.0) + time.perf_counter() - began


def _fresh(store: ChunkStore, changes: Sequence[Change]) -> dict[str, tuple[str, ...]]:
    """The chunks that are to be written and are not stored, of documents that are; of no document with too many."""
    known = {change.document.doc_id: [chunk.chunk_id for chunk in change.chunks] for change in changes if change.known}
    if not known:
        return {}
    stored = {chunk_id for chunk_id, _ in store.read(of_documents(list(known)), ("doc_id",))}
    found = {doc_id: tuple(one for one in ids if one not in stored) for doc_id, ids in known.items()}
    return {doc_id: ids for doc_id, ids in found.items() if len(ids) <= _MOST_FRESH}


class Indexer:
    """Puts documents into one tenant's store. One for each in a process; methods may be called from many threads."""

    def __init__(
        self, store: ChunkStore, dense: DenseEncoder | None, settings: Settings, llm: LLM | None = None
    ) -> None:
        """`llm` describes directories; None: a client of their own where the settings have one."""
        self._store, self._dense, self._sizes = store, dense, settings.chunking
        self._encoders = CollectionEncoders(store, dense, trigrams=settings.search.trigrams)
        self._maker = Maker(settings.chunking)
        # Two writes of a document must not mix their chunks.
        self._writing = Lock()
        self._flushed = 0.0
        self._grown = False
        self.directories = Directories(store, dense, settings, llm)

    @property
    def store(self) -> ChunkStore:
        """What it writes to."""
        return self._store

    def split_known(self, hashes: FileHashes) -> tuple[list[DocumentOutcome], list[int]]:
        """Outcomes of the files that are stored whole and unchanged, and the numbers of those that must be sent.

        Raises: StoreMismatchError, StoreError or TransientError of the store.
        """
        with timed("looking up"):
            if self._encoders.existing() is None:
                return [], list(range(len(hashes.files)))
            return split_known(self._store, hashes, self._sizes)

    def index(self, batch: Sequence[RawDocument]) -> tuple[list[DocumentOutcome], Cost]:
        """Outcomes in the order of the batch (several for a JSONL file), then what was removed; what the encoder cost.

        Of a file that comes whole, what the store has and was not read of it is removed.

        What is written outlives this process on return, and a power cut after FLUSH_S or `finish`. What cannot be read
        or encoded is a failed outcome and keeps what the store has of it. A batch may be given again.
        Raises: InputError for others' documents, StoreMismatchError, StoreError or TransientError of the store.
        """
        if others := {raw.tenant for raw in batch} - {self._store.tenant}:
            raise InputError("tenant", ", ".join(sorted(others)), f"this is the store of {self._store.tenant}")
        try:
            existing = self._encoders.existing()
        except EncoderError as error:
            read = [item for _, items in self._maker.read(batch, None)[0] for item in items]
            return [_failed(item, error) if isinstance(item, Document) else item for item in read], Cost()
        pieces, cuts = self._read(batch, existing)
        read, twice = last_of_each([item for _, items in pieces for item in items])
        units = {doc_id: unit for doc_id, unit in units_of(pieces, self._sizes).items() if doc_id not in twice}
        documents = [item for item in read if isinstance(item, Document)]
        done, removed, cost = dict[str, DocumentOutcome](), list[DocumentOutcome](), Cost()
        try:
            with timed("chunking"):
                changes = self._changes(documents, cuts, existing is not None, done)
            points, cost = self._encode(changes, existing, units)
            if existing:
                with self._writing:
                    removed = self._drop(gone.of_whole_files(self._store, pieces))
            fresh = self._write(changes, points)
            mark_units(self._store, units, list(done))
            for change in changes:
                status = DocumentStatus.CHANGED if change.known else DocumentStatus.ADDED
                made = outcome_of(change.document, status, len(change.chunks))
                done[change.document.doc_id] = made.but(fresh=fresh.get(change.document.doc_id, ()))
        except EncoderError as error:
            done = {document.doc_id: _failed(document, error) for document in documents} | done
        outcomes = [done[item.doc_id] if isinstance(item, Document) else item for item in read]
        return [*(_told_twice(one) if one.doc_id in twice else one for one in outcomes), *removed], cost

    def remove(self, source: str, namespace: str, identities: Collection[str]) -> list[DocumentOutcome]:
        """Remove the documents of files, of all files below folders, or of other identities. Returns the removed.

        Raises: StoreError or TransientError of the store.
        """
        if self._store.info() is None:
            return []
        with self._writing, timed("pruning"):
            return self._drop(gone.named(self._store, source, namespace, identities))

    def finish(
        self,
        prune: Mapping[str, Collection[str]] | None = None,
        unreadable: Collection[str] = (),
        namespace: str = "default",
        *,
        written: bool = True,
        pieces: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> list[DocumentOutcome]:
        """End an ingest: prune, renew directories and sparse vectors, count links. Returns the removed.

        `prune` maps a source to the ids that were seen there, failed ones included; what the store has from that source
        in `namespace` beyond them is removed. `unreadable` are paths of failed outcomes: a document of such a file
        ("path" or "path#id") stays. `written` False: this ingest wrote nothing, so nothing is done where nothing was
        removed and the last ingest came to its end. `pieces` maps a file that was read in pieces, all of it, to the ids
        that were in them; what the store has of it beyond these is removed.
        Raises: StoreError or TransientError of the store.
        """
        info = self._store.info()
        if info is None:
            return []
        built_with = info.built_with
        with self._writing:
            with timed("pruning"):
                lost = gone.pruned(self._store, namespace, prune or {}, unreadable)
                removed = self._drop(lost | gone.of_pieces(self._store, namespace, pieces))
            with timed("directories"):
                self.directories.renew(namespace, self._encoders.existing)
            if not (written or removed) and info.finished == self._state():
                return []
            if Bm25Encoder(built_with.avg_len).name == built_with.sparse:
                with timed("lengths"):
                    refit(self._store, built_with.avg_len, self._maker.vectors)
            with timed("links"):
                update_edges(self._store)
            self._store.mark_finished(self._state())
            self.directories.mark_current(namespace)
            self._store.flush()
        self._grown = True
        return removed

    def optimize(self) -> None:
        """Make the store faster to search, if an ingest has ended since the last time.

        Nobody needs to wait for it, or to know where it cannot be done: the next ingest does it.
        """
        if self._grown:
            with suppress(StoreError, TransientError):
                self._store.optimize()
                self._store.flush()
                self._grown = False

    def remove_documents(self, doc_ids: Sequence[str]) -> list[DocumentOutcome]:
        """Remove documents by id; those that are not stored are passed over. `finish` does what follows from it."""
        if self._store.info() is None:
            return []
        with self._writing:
            return self._drop({doc_id: path for doc_id, (_, path) in self._store.origins(doc_ids).items()})

    def _read(
        self, batch: Sequence[RawDocument], existing: KeywordEncoders | None
    ) -> tuple[list[ReadItems], dict[str, CutDocument]]:
        """What of each file counts, under the root that its documents are known from, and what is cut of them."""
        with timed("reading"):
            files, cuts = self._maker.read(batch, existing)
            documents = [one for _, items in files for one in items if isinstance(one, Document)] if existing else []
            origins = self._store.origins([one.doc_id for one in documents])
            moved = {one.doc_id for one in documents if is_elsewhere(one, origins)}
            for number, (raw, items) in enumerate(files):
                if ids := {one.doc_id for one in items if isinstance(one, Document)} & moved:
                    if ids & cuts.keys():  # cut as if they stood where they do not, and without their text
                        files[number] = raw, self._maker.read_again(raw)
                        cuts = {doc_id: one for doc_id, one in cuts.items() if doc_id not in ids}
                    files[number] = raw, with_known_origin(files[number][1], origins)
            return last_of_whole(files), cuts

    def _changes(
        self,
        documents: Sequence[Document],
        cuts: Mapping[str, CutDocument],
        exists: bool,
        done: dict[str, DocumentOutcome],
    ) -> list[Change]:
        """What is new or different; the others get their outcome in `done`."""
        stored = self._store.document_hashes([item.doc_id for item in documents]) if exists and documents else {}
        changes = []
        for document in documents:
            found = cuts.get(document.doc_id)
            content_hash = found.content_hash if found else document_hash(document, self._sizes)
            known = stored.get(document.doc_id)
            if known == content_hash:
                done[document.doc_id] = outcome_of(document, DocumentStatus.UNCHANGED)
                continue
            found = found or cut(document, content_hash, self._sizes)
            if found.chunks:
                changes.append(Change(document, found, known is not None))
            else:
                done[document.doc_id] = outcome_of(document, DocumentStatus.FAILED, reason=found.fault)
        return changes

    def _encode(
        self, changes: Sequence[Change], existing: KeywordEncoders | None, units: Mapping[str, Unit]
    ) -> tuple[list[ChunkPoint], Cost]:
        """The points of the changed documents. Dense first: an encoder that fails leaves no empty collection."""
        if not changes:
            return [], Cost()
        chunks = [chunk for change in changes for chunk in change.chunks]
        with timed("embedding"):
            vectors, cost = dense_vectors(self._dense, chunks)
        encoders = existing or self._encoders.ensure(chunks)
        with timed("keyword vectors"):
            bare = [chunk.full_text for change in changes if not change.cut.vectors for chunk in change.chunks]
            made = iter(self._maker.vectors(bare, encoders))
            keywords = [one for change in changes for one in change.cut.vectors or islice(made, len(change.chunks))]
        change_of_chunk = (change for change in changes for _ in change.chunks)
        rests = (rest for change in changes for rest in change.cut.rests)
        points = [
            point_of(
                change,
                chunk,
                dense=vector,
                between=rest,
                **keyword,
                **units[change.document.doc_id].fields() if change.document.doc_id in units else {},
            )
            for change, chunk, vector, keyword, rest in zip(
                change_of_chunk, chunks, vectors, keywords, rests, strict=True
            )
        ]
        return points, cost

    def _write(self, changes: Sequence[Change], points: Sequence[ChunkPoint]) -> dict[str, tuple[str, ...]]:
        """Each document's new chunks, then its stale ones go, so that a search always finds it.

        Returns, by document that was known, the ids of the chunks that it did not have (`DocumentOutcome.fresh`).
        """
        if not changes:
            return {}
        with self._writing, timed("writing"):
            fresh = _fresh(self._store, changes)
            before = mark_lost_links(self._store, {change.document.doc_id: change.chunks for change in changes})
            # The store does not tell a document that a crash tore from one it never saw: clear what it may have.
            self._store.delete_documents([change.document.doc_id for change in changes if not change.known])
            self._store.upsert(with_pending(points, before))
            for change in changes:
                if change.known:
                    self._store.delete_chunks(change.document.doc_id, [chunk.chunk_id for chunk in change.chunks])
            if time.monotonic() - self._flushed > FLUSH_S:
                self._store.flush()
                self._flushed = time.monotonic()
        return fresh

    def _state(self) -> str:
        """The store's state after a finished ingest; a later release makes another one."""
        info = self._store.info()
        return f"{INDEX_VERSION}:{info.index_version if info else None}"

    def _drop(self, lost: Mapping[str, str]) -> list[DocumentOutcome]:
        """Delete documents: id -> path."""
        if lost:
            mark_lost_links(self._store, dict.fromkeys(lost, ()))
            self._store.delete_documents(list(lost))
        return gone.outcomes(lost)
