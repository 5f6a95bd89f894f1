"""What stands around a hit: pages linked to and from it, callers, its directory's abstract, siblings.

One batched call to the store for all hits. Nothing outside the question's own filter is ever named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from qdrant_client import models

from shared.models import Chunk, Filters, Hit, PagePart
from shared.models.find import Anchor, Context, Related
from shared.store import ChunkStore
from shared.store.page_keys import is_page_key
from shared.store.schema import one_of, to_filter
from shared.uri import DIRECTORIES, page_uri, uri_of

#: Keys of one hit that are followed, each way.
_KEYS = 8
#: Chunks read for one key, for who leads to a hit, and for one directory.
_TARGETS, _SOURCES, _SIBLINGS = 4, 8, 10
#: A code name that more chunks define than this says nothing.
_AMBIGUOUS = 3
_RECORDS = (".jsonl", ".ndjson")
#: How to address what was reached, what it is, and over which edge.
_Way = tuple[Callable[[Chunk], str], Hit, str]


class _Ask(NamedTuple):
    """What one request of the batch is about: a key, what leads to a document, a directory, or the abstracts."""

    what: str
    about: tuple[str, ...]


def contexts(
    anchors: Sequence[Anchor], filters: Filters, most: int, store: ChunkStore, excludes: Sequence[str] = ()
) -> dict[str, Context]:
    """Contexts by chunk id, at most `most` related ones each; hits that have none are left out.

    `excludes` are path prefixes that are never shown unless the filter names them. Raises: the store's errors.
    """
    hidden = tuple(path for path in excludes if not any(asked.startswith(path) for asked in filters.paths))
    asks = dict(_asks(anchors, to_filter(filters), filters.namespace))
    answers = store.query(list(asks.values())) if asks else []
    found = {
        ask: [hit for hit in hits if not (hidden and hit.path.startswith(hidden))]
        for ask, hits in zip(asks, answers, strict=True)
    }
    abstracts = {hit.path: hit.text for hits in _of(found, "abstracts") for hit in hits}
    known = {anchor.doc_id for anchor in anchors}
    shown = {
        anchor.chunk_id: Context(
            abstract=abstracts.get(directory_of(anchor.path), ""),
            related=tuple(islice(_related(anchor, found, known), most)),
        )
        for anchor in anchors
    }
    return {chunk_id: context for chunk_id, context in shown.items() if context != Context()}


def directory_of(path: str) -> str:
    """The directory that a document stands in, with its "/"; a file of records is the directory of its records."""
    file, mark, _ = path.partition("#")
    if mark and file.endswith(_RECORDS):
        return f"{file}/"
    head, slash, _ = path.rpartition("/")
    return head + slash


def _asks(
    anchors: Sequence[Anchor], allowed: models.Filter, namespace: str
) -> Iterator[tuple[_Ask, models.QueryRequest]]:
    """The requests of the one call; what several hits need is asked once (later ones are the same)."""
    directories = list(dict.fromkeys(filter(None, (directory_of(anchor.path) for anchor in anchors))))
    for anchor in anchors:
        for key in _outgoing(anchor):
            yield _Ask("key", (key,)), _request([allowed, one_of("defines", [key])], _TARGETS)
        if own := _incoming(anchor):
            leading = models.Filter(should=[one_of("refs", own), one_of("mentions", own)])
            yield _Ask("sources", own), _request([allowed, leading], _SOURCES)
    for directory in directories:
        inside = models.FieldCondition(key="path", match=models.MatchPrefix(prefix=_prefix(directory)))
        yield _Ask("directory", (directory,)), _request([allowed, inside], _SIBLINGS)
    if directories:
        abstract = [one_of("namespace", [namespace + DIRECTORIES]), one_of("part", [PagePart.ABSTRACT.value])]
        asked = _request([*abstract, one_of("path", directories)], len(directories))
        yield _Ask("abstracts", ()), asked


def _related(anchor: Anchor, found: Mapping[_Ask, list[Hit]], known: set[str]) -> Iterator[Related]:
    """Links first, then what leads here, then documents beside it that are no results themselves; no repeats."""
    seen: set[str] = set()
    for address, hit, how in chain(_links(anchor, found), _leading(anchor, found), _beside(anchor, found, known)):
        place = hit.symbol or hit.doc_id
        if place not in seen and hit.chunk_id != anchor.chunk_id and (hit.symbol or hit.doc_id != anchor.doc_id):
            seen.add(place)
            yield Related(uri=address(hit), title=hit.symbol or hit.title, how=how)


def _links(anchor: Anchor, found: Mapping[_Ask, list[Hit]]) -> Iterator[_Way]:
    for key in _outgoing(anchor):
        targets = found.get(_Ask("key", (key,)), [])
        if is_page_key(key):
            if len({hit.doc_id for hit in targets}) == 1:
                hit = targets[0]
                yield page_uri, hit, "links to" if key in anchor.refs else "mentions"
        elif len(targets) <= _AMBIGUOUS:
            yield from ((uri_of, hit, "calls") for hit in targets)


def _leading(anchor: Anchor, found: Mapping[_Ask, list[Hit]]) -> Iterator[_Way]:
    own = _incoming(anchor)
    for hit in found.get(_Ask("sources", own), []) if own else []:
        over = set(own).intersection(hit.refs)
        if not over:
            yield uri_of, hit, "mentioned in"
        else:
            yield uri_of, hit, "linked from" if any(is_page_key(key) for key in over) else "called by"


def _beside(anchor: Anchor, found: Mapping[_Ask, list[Hit]], known: set[str]) -> Iterator[_Way]:
    directory = directory_of(anchor.path)
    inside = found.get(_Ask("directory", (directory,)), [])
    for hit in sorted(inside, key=lambda hit: (hit.path, hit.chunk_id)):
        if hit.doc_id not in known and directory_of(hit.path) == directory:
            yield page_uri, hit.model_copy(update={"symbol": None}), "beside"


def _outgoing(anchor: Anchor) -> tuple[str, ...]:
    own = set(anchor.defines)
    return tuple(key for key in dict.fromkeys((*anchor.refs, *anchor.mentions)) if key not in own)[:_KEYS]


def _incoming(anchor: Anchor) -> tuple[str, ...]:
    """What others call this by. A bare name of code is anybody's: it is asked for only where there is no other."""
    telling = [key for key in anchor.defines if is_page_key(key) or "." in key]
    return tuple(telling or anchor.defines)[:_KEYS]


def _prefix(directory: str) -> str:
    file = directory.removesuffix("/")
    return f"{file}#" if file.endswith(_RECORDS) else directory


def _of(found: Mapping[_Ask, list[Hit]], what: str) -> Iterator[list[Hit]]:
    return (hits for ask, hits in found.items() if ask.what == what)


def _request(must: Sequence[models.Condition], limit: int) -> models.QueryRequest:
    """Matching chunks without a score."""
    return models.QueryRequest(filter=models.Filter(must=list(must)), limit=limit, with_payload=True)
