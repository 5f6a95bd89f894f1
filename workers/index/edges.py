"""Brings mentions and backlinks up to date with what an ingest wrote: of what changed, and no more.

What is left to do is stored as `pending` of the chunks and cleared last. So an ingest that is killed anywhere is
finished by the next one, and one that wrote nothing has nothing to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qdrant_client import models

from shared.language.page_keys import LABEL, fallbacks, is_page_key, links
from shared.models import Chunk
from shared.store import ChunkPoint, ChunkStore
from shared.store.base import Pending
from shared.store.schema import READ_BATCH, equals, of_documents, one_of, sliced
from workers.index.mentions import mention_changes

#: Documents, or keys, of one request to the store.
_SLICE = 500


class StoredState(NamedTuple):
    """What a document's new points take over from its stored ones."""

    title: str
    sought: tuple[str, ...]


@dataclass(slots=True)
class _PendingChunks:
    """What is pending in a namespace, and the keys whose definers may have gained or lost a link by it."""

    chunk_ids: set[str] = field(default_factory=set)
    doc_ids: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)

    def add(self, chunk_id: str, payload: Mapping[str, Any]) -> None:
        self.chunk_ids.add(chunk_id)
        self.doc_ids.add(payload["doc_id"])
        defines = [key for key in payload.get("defines", ()) if is_page_key(key)]
        self.keys.update(key for key in payload.get("refs", ()) if is_page_key(key))
        self.keys.update(defines, *(fallbacks(key) for key in defines))


def mark_lost_links(store: ChunkStore, after: Mapping[str, Sequence[Chunk]]) -> dict[str, StoredState]:
    """Mark the documents that lose a link, or the namesake of their title, as pending.

    Called before documents are rewritten or removed: `after` has the chunks that they will have. Where one is removed,
    a chunk that stays is marked, so that mentions are counted again. Returns what is stored of them now.
    """
    before: dict[str, StoredState] = {}
    gone: defaultdict[str, set[str]] = defaultdict(set)
    shrunk: set[str] = set()
    fields = ("doc_id", "namespace", "title", "refs", "defines", "sought", "ordinal")
    for doc_ids in sliced(list(after), READ_BATCH):
        for _, payload in store.read(of_documents(doc_ids), fields):
            doc_id = payload["doc_id"]
            if doc_id not in before or payload.get("sought"):
                before[doc_id] = StoredState(payload["title"], tuple(payload.get("sought", ())))
            gone[payload["namespace"]] |= _lost(payload, after[doc_id])
            if not after[doc_id]:
                shrunk.add(payload["namespace"])
    for namespace, keys in gone.items():
        _mark_definers(store, namespace, keys, after)
    for namespace in shrunk:
        others = store.read(models.Filter(must=[equals("namespace", namespace)]), ("doc_id",))
        if mark := next((chunk_id for chunk_id, payload in others if payload["doc_id"] not in after), None):
            store.set_payloads({mark: {"pending": int(Pending.CHUNK)}})
    return before


def with_pending(points: Sequence[ChunkPoint], before: Mapping[str, StoredState]) -> list[ChunkPoint]:
    """`points` as pending: a page that keeps its title need not be searched for in every chunk again."""
    marked = []
    for point in points:
        old = before.get(point.chunk.doc_id)
        changes: dict[str, Any] = {"pending": Pending.CHUNK}
        if old is not None and old.title == point.chunk.title and point.chunk.ordinal == 0:
            changes["sought"] = old.sought
        marked.append(point.but(**changes))
    return marked


def update_edges(store: ChunkStore) -> None:
    """Bring mentions and backlinks up to date in every namespace where something is pending. Nothing pending: no work.

    Raises: StoreError or TransientError of the store.
    """
    concerned: defaultdict[str, _PendingChunks] = defaultdict(_PendingChunks)
    pending = models.Filter(must=[models.FieldCondition(key="pending", range=models.Range(gte=1))])
    for chunk_id, payload in store.read(pending, ("namespace", "doc_id", "refs", "defines")):
        concerned[payload["namespace"]].add(chunk_id, payload)
    for namespace, found in concerned.items():
        changes = mention_changes(store, namespace)
        store.set_payloads(
            {
                chunk_id: {name: fields[name] for name in ("mentions", "unfollowed")}
                for chunk_id, fields in changes.items()
                if "mentions" in fields
            }
        )
        linked = definers(store, namespace, found.keys)
        store.set_backlinks(backlink_counts(store, namespace, found.doc_ids.union(*linked.values())))
        done: dict[str, dict[str, Any]] = {chunk_id: {"pending": 0} for chunk_id in found.chunk_ids}
        for chunk_id, fields in changes.items():
            if "sought" in fields:
                done.setdefault(chunk_id, {})["sought"] = fields["sought"]
        store.set_payloads(done)


def _lost(payload: Mapping[str, Any], chunks: Sequence[Chunk]) -> set[str]:
    """The keys of a stored chunk that no new chunk has: their definers lose a link or a namesake."""
    refs = {key for chunk in chunks for key in chunk.refs}
    defines = {key for chunk in chunks for key in chunk.defines}
    lost = {key for key in payload.get("refs", ()) if key not in refs and is_page_key(key)}
    gone = {key for key in payload.get("defines", ()) if key not in defines and is_page_key(key)}
    return lost.union(gone, *map(fallbacks, gone))


def _mark_definers(store: ChunkStore, namespace: str, keys: Iterable[str], but: Mapping[str, object]) -> None:
    """Mark the first chunk of each other document that defines one of `keys`."""
    marks = {
        chunk_id: {"pending": int(Pending.CHUNK)}
        for chunk_id, payload in defining(store, namespace, keys, ("doc_id", "pending"))
        if payload["doc_id"] not in but and not payload.get("pending", 0)
    }
    if marks:
        store.set_payloads(marks)


def definers(store: ChunkStore, namespace: str, keys: Iterable[str]) -> defaultdict[str, set[str]]:
    """Key -> ids of the documents that define it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    wanted = set(keys)
    for _, payload in defining(store, namespace, wanted, ("doc_id", "defines")):
        for key in wanted.intersection(payload.get("defines", ())):
            found[key].add(payload["doc_id"])
    return found


def defining(
    store: ChunkStore, namespace: str, keys: Iterable[str], fields: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """chunk_id and fields of the first chunk of each document that defines one of `keys`; some come twice.

    For a label, of the chunk that it stands in.
    """
    for part in sliced(sorted(keys), _SLICE):
        labels = [key for key in part if key.startswith(LABEL)]
        if others := [key for key in part if not key.startswith(LABEL)]:
            yield from store.read(_where(namespace, "defines", others, first=True), fields)
        if labels:
            yield from store.read(_where(namespace, "defines", labels), fields)


def backlink_counts(store: ChunkStore, namespace: str, doc_ids: Collection[str]) -> dict[str, int]:
    """doc_id -> number of other documents of its namespace that link to it.

    A link counts for the first of its meanings that a document defines; one that several define is ambiguous and counts
    for none of them.
    """
    counts: dict[str, int] = {}
    for part in sliced(sorted(doc_ids), _SLICE):
        counts |= _counts_of(store, namespace, part)
    return counts


def _counts_of(store: ChunkStore, namespace: str, doc_ids: Sequence[str]) -> dict[str, int]:
    own = _defined(store, namespace, doc_ids)
    sources: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for part in sliced(sorted(own), _SLICE):
        for _, payload in store.read(_where(namespace, "refs", part), ("doc_id", "refs")):
            for link in links(payload["refs"]):
                if not own.isdisjoint(link):
                    sources[link].add(payload["doc_id"])
    known = definers(store, namespace, {key for link in sources for key in link})
    backlinks: dict[str, set[str]] = {doc_id: set() for doc_id in doc_ids}
    for link, linking in sources.items():
        named = next((known[key] for key in link if key in known), set())
        if len(named) == 1 and (target := next(iter(named))) in backlinks:
            backlinks[target] |= linking - named
    return {doc_id: len(linking) for doc_id, linking in backlinks.items()}


def _defined(store: ChunkStore, namespace: str, doc_ids: Sequence[str]) -> set[str]:
    """The keys of pages that documents define: in their first chunks, labels of reStructuredText in any."""
    own: set[str] = set()
    labelled = []
    for _, payload in store.read(_where(namespace, "doc_id", doc_ids, first=True), ("doc_id", "path", "defines")):
        own.update(key for key in payload.get("defines", ()) if is_page_key(key))
        if payload["path"].lower().endswith(".rst"):
            labelled.append(payload["doc_id"])
    if labelled:
        for _, payload in store.read(_where(namespace, "doc_id", labelled), ("defines",)):
            own.update(key for key in payload.get("defines", ()) if key.startswith(LABEL))
    return own


def _where(namespace: str, field: str, values: Sequence[str], *, first: bool = False) -> models.Filter:
    """Chunks of a namespace with one of `values` in a field; `first`: the first of each document only."""
    must: list[models.Condition] = [equals("namespace", namespace), one_of(field, values)]
    if first:
        must.append(models.FieldCondition(key="ordinal", range=models.Range(lte=0)))
    return models.Filter(must=must)
