"""The context of a hit: pages linked to and from it, callers, its directory's abstract, siblings.

One batched call to the store for all hits. Names nothing outside the question's own filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from qdrant_client import models

from shared.language.page_keys import is_page_key
from shared.models import Chunk, Filters, Hit, PagePart
from shared.models.find import Anchor, Context, Related
from shared.store import ChunkStore
from shared.store.schema import one_of, to_filter
from shared.uri import DIRECTORIES, page_uri, uri_of

#: Keys of one hit that are followed, each way.
_MAX_KEYS = 8
#: Chunks read for one key, for the sources that lead to a hit, and for one directory.
_TARGETS, _SOURCES, _SIBLINGS = 4, 8, 10
#: A code name that more chunks define than this is ambiguous: not followed.
_MAX_DEFINITIONS = 3
_RECORDS = (".jsonl", ".ndjson")
#: How to address a related hit, the hit, and its relation.
_Relation = tuple[Callable[[Chunk], str], Hit, str]


class _Lookup(NamedTuple):
    """What one request of the batch looks for: a key, the sources of a document, a directory, or the abstracts."""

    kind: str
    keys: tuple[str, ...]


_ABSTRACTS = _Lookup("abstracts", ())


def contexts(
    anchors: Sequence[Anchor], filters: Filters, limit: int, store: ChunkStore, excludes: Sequence[str] = ()
) -> dict[str, Context]:
    """Contexts by chunk id, at most `limit` related ones each; hits that have none are left out.

    `excludes` are path prefixes that are never shown unless the filter names them. Raises: the store's errors.
    """
    hidden = tuple(path for path in excludes if not any(wanted.startswith(path) for wanted in filters.paths))
    requests = dict(_requests(anchors, to_filter(filters), filters.namespace))
    answers = store.query(list(requests.values())) if requests else []
    found = {
        lookup: [hit for hit in hits if not (hidden and hit.path.startswith(hidden))]
        for lookup, hits in zip(requests, answers, strict=True)
    }
    abstracts = {hit.path: hit.text for hit in found.get(_ABSTRACTS, ())}
    known = {anchor.doc_id for anchor in anchors}
    shown = {
        anchor.chunk_id: Context(
            abstract=abstracts.get(containing_directory(anchor.path), ""),
            related=tuple(islice(_related_of(anchor, found, known), limit)),
        )
        for anchor in anchors
    }
    return {chunk_id: context for chunk_id, context in shown.items() if context != Context()}


def containing_directory(path: str) -> str:
    """The directory that a document stands in, with its "/"; a file of records is the directory of its records."""
    file, mark, _ = path.partition("#")
    if mark and file.endswith(_RECORDS):
        return f"{file}/"
    head, slash, _ = path.rpartition("/")
    return head + slash


def _requests(
    anchors: Sequence[Anchor], allowed: models.Filter, namespace: str
) -> Iterator[tuple[_Lookup, models.QueryRequest]]:
    """The requests of the one call; a lookup that several hits need is the same key of the result."""
    directories = list(dict.fromkeys(filter(None, (containing_directory(anchor.path) for anchor in anchors))))
    for anchor in anchors:
        for key in _outgoing(anchor):
            yield _Lookup("key", (key,)), _request([allowed, one_of("defines", [key])], _TARGETS)
        if own := _incoming(anchor):
            leading = models.Filter(should=[one_of("refs", own), one_of("mentions", own)])
            yield _Lookup("sources", own), _request([allowed, leading], _SOURCES)
    for directory in directories:
        file = directory.removesuffix("/")
        prefix = f"{file}#" if file.endswith(_RECORDS) else directory
        inside = models.FieldCondition(key="path", match=models.MatchPrefix(prefix=prefix))
        yield _Lookup("directory", (directory,)), _request([allowed, inside], _SIBLINGS)
    if directories:
        abstract = [one_of("namespace", [namespace + DIRECTORIES]), one_of("part", [PagePart.ABSTRACT.value])]
        request = _request([*abstract, one_of("path", directories)], len(directories))
        yield _ABSTRACTS, request


def _related_of(anchor: Anchor, found: Mapping[_Lookup, list[Hit]], known: set[str]) -> Iterator[Related]:
    """Targets first, then sources, then documents of the same directory that are no results themselves; no repeats."""
    seen: set[str] = set()
    for address, hit, how in chain(_targets(anchor, found), _sources(anchor, found), _siblings(anchor, found, known)):
        place = hit.symbol or hit.doc_id
        if place not in seen and hit.chunk_id != anchor.chunk_id and (hit.symbol or hit.doc_id != anchor.doc_id):
            seen.add(place)
            yield Related(uri=address(hit), title=hit.symbol or hit.title, how=how)


def _targets(anchor: Anchor, found: Mapping[_Lookup, list[Hit]]) -> Iterator[_Relation]:
    for key in _outgoing(anchor):
        targets = found.get(_Lookup("key", (key,)), [])
        if is_page_key(key):
            if len({hit.doc_id for hit in targets}) == 1:
                hit = targets[0]
                yield page_uri, hit, "links to" if key in anchor.refs else "mentions"
        elif len(targets) <= _MAX_DEFINITIONS:
            yield from ((uri_of, hit, "calls") for hit in targets)


def _sources(anchor: Anchor, found: Mapping[_Lookup, list[Hit]]) -> Iterator[_Relation]:
    own = _incoming(anchor)
    for hit in found.get(_Lookup("sources", own), []) if own else []:
        shared = set(own).intersection(hit.refs)
        linked = "linked from" if any(is_page_key(key) for key in shared) else "called by"
        yield uri_of, hit, linked if shared else "mentioned in"


def _siblings(anchor: Anchor, found: Mapping[_Lookup, list[Hit]], known: set[str]) -> Iterator[_Relation]:
    directory = containing_directory(anchor.path)
    inside = found.get(_Lookup("directory", (directory,)), [])
    for hit in sorted(inside, key=lambda hit: (hit.path, hit.chunk_id)):
        if hit.doc_id not in known and containing_directory(hit.path) == directory:
            yield page_uri, hit.model_copy(update={"symbol": None}), "beside"


def _outgoing(anchor: Anchor) -> tuple[str, ...]:
    own = set(anchor.defines)
    return tuple(key for key in dict.fromkeys((*anchor.refs, *anchor.mentions)) if key not in own)[:_MAX_KEYS]


def _incoming(anchor: Anchor) -> tuple[str, ...]:
    """The keys by which others refer to this. A bare name of code is ambiguous: used only where there is no other."""
    qualified = [key for key in anchor.defines if is_page_key(key) or "." in key]
    return tuple(qualified or anchor.defines)[:_MAX_KEYS]


def _request(must: Sequence[models.Condition], limit: int) -> models.QueryRequest:
    """Matching chunks without a score."""
    return models.QueryRequest(filter=models.Filter(must=list(must)), limit=limit, with_payload=True)
