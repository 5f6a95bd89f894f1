"""Joins what an ingest wrote with the rest of the corpus: mentions and backlinks, of what changed and no more.

What is left to do stands in the store, as `pending` of the chunks, and goes last. So an ingest that is killed anywhere
is brought to the same end by the next one, and one that wrote nothing has nothing to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qdrant_client import models

from shared.models import Chunk
from shared.page_keys import fallbacks, is_page_key, title_key
from shared.store import ChunkPoint, ChunkStore
from shared.store.base import Pending
from shared.store.filters import of_documents
from shared.store.schema import PAGE, sliced
from workers.index.backlinks import backlink_counts, defining, owners
from workers.index.mention_pass import mention_changes


class Before(NamedTuple):
    """A document as it was stored: what its next form keeps of it."""

    title: str
    pending: int
    common: tuple[str, ...]


@dataclass(slots=True)
class _Concerned:
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


def release(store: ChunkStore, after: Mapping[str, Sequence[Chunk]]) -> dict[str, Before]:
    """Call before documents are written anew or removed: `after` has the chunks that they will have.

    Marks the documents that lose a link, or the namesake of their title, and tells what the documents were.
    """
    before: dict[str, Before] = {}
    gone: defaultdict[str, dict[str, int]] = defaultdict(dict)
    fields = ("doc_id", "namespace", "title", "refs", "defines", "pending", "common")
    for doc_ids in sliced(list(after), PAGE):
        for _, payload in store.read(of_documents(doc_ids), fields):
            doc_id, title = payload["doc_id"], payload["title"]
            known = before.get(doc_id, Before(title, 0, ()))
            pending = max(known.pending, payload.get("pending", 0))
            before[doc_id] = Before(title, pending, tuple(payload.get("common", ())))
            for key, level in _lost(payload, after[doc_id]).items():
                marks = gone[payload["namespace"]]
                marks[key] = max(level, marks.get(key, 0))
    for namespace, keys in gone.items():
        for level in (Pending.CHUNK, Pending.PAGE):
            _mark(store, namespace, [key for key, its in keys.items() if its == level], level, after)
    return before


def carried(points: Sequence[ChunkPoint], before: Mapping[str, Before]) -> list[ChunkPoint]:
    """`points` with the mark that they need: a page under its old title need not be sought in every chunk again."""
    marked = []
    for point in points:
        old = before.get(point.chunk.doc_id)
        same = old is not None and old.title == point.chunk.title
        changes: dict[str, Any] = {"pending": Pending.PAGE}
        if old is not None and same:
            changes = {"pending": Pending(max(old.pending, Pending.CHUNK)), "common": old.common}
        marked.append(point.model_copy(update=changes))
    return marked


def settle(store: ChunkStore) -> None:
    """Bring mentions and backlinks up to date in every namespace where something is pending. Nothing pending: no work.

    Raises: StoreError or TransientError of the store.
    """
    concerned: defaultdict[str, _Concerned] = defaultdict(_Concerned)
    pending = models.Filter(must=[models.FieldCondition(key="pending", range=models.Range(gte=1))])
    for chunk_id, payload in store.read(pending, ("namespace", "doc_id", "refs", "defines")):
        concerned[payload["namespace"]].add(chunk_id, payload)
    for namespace, found in concerned.items():
        changes = mention_changes(store, namespace)
        store.set_payloads({
            chunk_id: {"mentions": fields["mentions"]} for chunk_id, fields in changes.items() if "mentions" in fields
        })  # fmt: skip
        linked = owners(store, namespace, found.keys)
        store.set_backlinks(backlink_counts(store, namespace, found.doc_ids.union(*linked.values())))
        done: dict[str, dict[str, Any]] = {chunk_id: {"pending": 0} for chunk_id in found.chunk_ids}
        for chunk_id, fields in changes.items():
            if "common" in fields:
                done.setdefault(chunk_id, {})["common"] = fields["common"]
        store.set_payloads(done)


def _lost(payload: Mapping[str, Any], chunks: Sequence[Chunk]) -> dict[str, int]:
    """The keys of a stored chunk that none of its document's new chunks has.

    Who defines one has a link less (CHUNK), or a namesake less (PAGE).
    """
    refs = {key for chunk in chunks for key in chunk.refs}
    defines = {key for chunk in chunks for key in chunk.defines}
    lost = {key: int(Pending.CHUNK) for key in payload.get("refs", ()) if key not in refs and is_page_key(key)}
    title = title_key(payload["title"])
    for key in payload.get("defines", ()):
        if key not in defines and is_page_key(key):
            lost |= dict.fromkeys(fallbacks(key), int(Pending.CHUNK))
            lost[key] = int(Pending.PAGE if key == title else Pending.CHUNK)
    return lost


def _mark(store: ChunkStore, namespace: str, keys: Sequence[str], level: Pending, but: Mapping[str, object]) -> None:
    """Mark the first chunk of each other document that defines one of `keys`, unless it is marked that much already."""
    marks = {
        chunk_id: {"pending": int(level)}
        for chunk_id, payload in defining(store, namespace, keys, ("doc_id", "pending"))
        if payload["doc_id"] not in but and payload.get("pending", 0) < level
    }
    if marks:
        store.set_payloads(marks)
