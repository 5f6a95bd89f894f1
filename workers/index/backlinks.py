"""How many other documents link to each, asked of the store's indexes. Writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from qdrant_client import models

from shared.page_keys import LABEL, is_page_key, links
from shared.store import ChunkStore
from shared.store.filters import equals, one_of
from shared.store.schema import sliced

#: Documents, or keys, of one question to the store.
_SLICE = 500


def owners(store: ChunkStore, namespace: str, keys: Iterable[str]) -> defaultdict[str, set[str]]:
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
        counts |= _counted(store, namespace, part)
    return counts


def _counted(store: ChunkStore, namespace: str, doc_ids: Sequence[str]) -> dict[str, int]:
    own = _defined(store, namespace, doc_ids)
    sources: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for payload in _linking(store, namespace, own):
        for link in links(payload["refs"]):
            if not own.isdisjoint(link):
                sources[link].add(payload["doc_id"])
    known = owners(store, namespace, {key for link in sources for key in link})
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


def _linking(store: ChunkStore, namespace: str, keys: Collection[str]) -> Iterator[dict[str, Any]]:
    """The chunks with one of `keys` among their refs; some come twice."""
    for part in sliced(sorted(keys), _SLICE):
        for _, payload in store.read(_where(namespace, "refs", part), ("doc_id", "refs")):
            yield payload


def _where(namespace: str, field: str, values: Sequence[str], *, first: bool = False) -> models.Filter:
    """Chunks of a namespace with one of `values` in a field; `first`: the first of each document only."""
    must: list[models.Condition] = [
        equals("namespace", namespace),
        one_of(field, values),
    ]
    if first:
        must.append(models.FieldCondition(key="ordinal", range=models.Range(lte=0)))
    return models.Filter(must=must)
