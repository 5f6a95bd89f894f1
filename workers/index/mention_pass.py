"""Which chunks mention which pages of a namespace, brought up to date. Reads the store and says what to write.

What is new is scanned against every title, and everything against what is new: the outcome is that of a scan of all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qdrant_client import models

from shared.models.hits import Part
from shared.store import ChunkStore
from shared.store.base import Pending
from shared.store.filters import equals
from workers.index.mentions import Scanner, Target, key_of, names_of

MAX_MENTIONS = 16
#: A name in more chunks than this, or than this share of them, says nothing: its edges would lead from everywhere.
MAX_CHUNKS, MAX_SHARE = 50, 0.02
_PAGE_FIELDS = ("doc_id", "title", "common", "pending", "defines")
_CHUNK_FIELDS = ("doc_id", "text", "part", "pending", "refs", "mentions")

Payloads = dict[str, dict[str, Any]]


class _Page(NamedTuple):
    """A document by its first chunk. `common`: names of it that were too common when its title was new."""

    chunk_id: str
    doc_id: str
    title: str
    common: tuple[str, ...]
    entering: bool


@dataclass(slots=True)
class _Found:
    """What the pass saw: phrases by chunk id, what the chunks hold now, and how many chunks there are."""

    phrases: dict[str, set[str]] = field(default_factory=dict)
    stored: dict[str, tuple[set[str], list[str], bool]] = field(default_factory=dict)
    chunks: int = 0


def mention_changes(store: ChunkStore, namespace: str) -> Payloads:
    """chunk_id -> payload fields to set: `mentions` where they differ, `common` of the pages that entered.

    A title that several pages share leads to none of them. A name is judged common when its page enters.
    """
    pages = _pages(store, namespace)
    entering = _entering(pages)
    names = _names(pages, entering)
    fresh = {text: name for text, name in names.items() if name.doc_id in entering}
    found = _scan(store, namespace, Scanner(names), Scanner(fresh), whole=bool(entering))
    common = _common(found, fresh)
    forgotten = {key_of(page.title) for page in pages if page.doc_id in entering}
    changes: Payloads = {}
    for chunk_id, (refs, mentions, pending) in found.stored.items():
        kept = () if pending else (key for key in mentions if key not in forgotten)
        new = {names[text].key for text in found.phrases.get(chunk_id, ()) if text not in common}
        keys = sorted({*kept, *new} - refs, key=lambda key: (-len(key), key))[:MAX_MENTIONS]
        if keys != mentions:
            changes[chunk_id] = {"mentions": keys}
    for page in pages:
        if page.doc_id in entering:
            too_common = sorted(text for text in common if fresh[text].doc_id == page.doc_id)
            if too_common != list(page.common):
                changes.setdefault(page.chunk_id, {})["common"] = too_common
    return changes


def _pages(store: ChunkStore, namespace: str) -> list[_Page]:
    first = models.FieldCondition(key="ordinal", range=models.Range(lte=0))
    return [
        _Page(
            chunk_id,
            payload["doc_id"],
            payload["title"],
            tuple(payload.get("common", ())),
            payload.get("pending", 0) == Pending.PAGE,
        )
        for chunk_id, payload in store.read(_within(namespace, first), _PAGE_FIELDS)
        if key_of(payload["title"]) in payload.get("defines", ())
    ]


def _owners(pages: Sequence[_Page]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Phrase -> ids of the pages that it is the title of, and the same for titles without their brackets."""
    full: defaultdict[str, set[str]] = defaultdict(set)
    bare: defaultdict[str, set[str]] = defaultdict(set)
    for page in pages:
        for text, name in names_of(page.title):
            (full if name.full else bare)[text].add(page.doc_id)
    return full, bare


def _names(pages: Sequence[_Page], entering: Collection[str]) -> dict[str, Target]:
    """What to look for: names that one page alone has, a whole title before one without its bracket."""
    full, bare = _owners(pages)
    names = {}
    for page in pages:
        for text, name in names_of(page.title):
            mine = len(full[text]) == 1 if name.full else text not in full and len(bare[text]) == 1
            if mine and (page.doc_id in entering or text not in page.common):
                names[text] = Target(name, key_of(page.title), page.doc_id)
    return names


def _entering(pages: Sequence[_Page]) -> set[str]:
    """The pages whose title is new, and those that share a name with one."""
    texts = {page.doc_id: {text for text, _ in names_of(page.title)} for page in pages}
    new = set[str]().union(*(texts[page.doc_id] for page in pages if page.entering))
    return {page.doc_id for page in pages if page.entering or not new.isdisjoint(texts[page.doc_id])}


def _scan(store: ChunkStore, namespace: str, scanner: Scanner, fresh: Scanner, *, whole: bool) -> _Found:
    """Pending chunks against all names; `whole`: all the others against the fresh ones."""
    found = _Found()
    pending = models.FieldCondition(key="pending", range=models.Range(gte=1))
    for chunk_id, payload in store.read(_within(namespace, *([] if whole else [pending])), _CHUNK_FIELDS):
        found.chunks += 1
        is_pending = payload.get("pending", 0) > Pending.NOTHING
        mentions = list(payload.get("mentions", ()))
        if payload.get("part") != Part.CODE:
            texts = (scanner if is_pending else fresh).found(payload["text"], payload["doc_id"])
            if texts:
                found.phrases[chunk_id] = texts
        if is_pending or mentions or chunk_id in found.phrases:
            found.stored[chunk_id] = (set(payload.get("refs", ())), mentions, is_pending)
    return found


def _common(found: _Found, fresh: Mapping[str, object]) -> set[str]:
    counts = Counter(text for texts in found.phrases.values() for text in texts if text in fresh)
    return {text for text, count in counts.items() if count > max(MAX_CHUNKS, MAX_SHARE * found.chunks)}


def _within(namespace: str, *conditions: models.Condition) -> models.Filter:
    own = equals("namespace", namespace)
    return models.Filter(must=[own, *conditions])
