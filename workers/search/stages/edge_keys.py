"""The edges between chunks: keys of a source match the names of a target, and each key may mean several places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, get_args

from qdrant_client import models

from shared.language import derived, languages
from shared.language.page_keys import LABEL, is_page_key
from shared.models import Hit
from shared.store import ChunkStore
from shared.store.schema import equals, one_of

#: Suffixes of a qualified name that count as its names, as they are stored in `Chunk.defines`.
_SUFFIXES = 6
#: Chunks that `places_of` reads. Reading a few hundred costs a hundredth of a count over all values of a field, which
#: looks at every name of the collection (embedded store, 18,000 chunks, 75,000 names: 0.4 ms against 600).
_MAX_READ = 2000
#: Values that such a count returns: the frequent ones come first, what is left out is rare.
_MAX_VALUES = 5000
#: Characters of a question that are read for a direction.
_READ_CHARS = 500
#: `Via.how` of an edge that was followed against its direction.
_BACKWARDS = {"call": "called by", "link": "linked by", "mention": "mentioned by"}
Direction = Literal["out", "back"]


class Edge(NamedTuple):
    """The key over which one chunk leads to another. `places`: how many definitions the key may mean."""

    key: str
    how: str
    places: int


class EdgeEnds(NamedTuple):
    """A chunk with the keys that it leads to, each with how (link, mention, call), and the names it goes by."""

    hit: Hit
    keys: Mapping[str, str]
    names: frozenset[str]


class Neighbour(NamedTuple):
    """A chunk that an edge joins with the chunk `start_id`; `relevance` to the question, `precedence` as in `Via`."""

    hit: Hit
    start_id: str
    edge: Edge
    relevance: float
    precedence: int | None = None


def edge_ends(hit: Hit) -> EdgeEnds:
    """Both ends of a chunk's edges. A bare name is left out where its qualified one is a key too."""
    keys = dict.fromkeys(hit.mentions, "mention")
    keys |= {key: "link" if is_page_key(key) else "call" for key in hit.refs}
    longer = {key[at + 1 :] for key in keys if not is_page_key(key) for at, sign in enumerate(key) if sign == "."}
    return EdgeEnds(hit, {key: how for key, how in keys.items() if key not in longer}, frozenset(_names(hit)))


def _names(hit: Hit) -> tuple[str, ...]:
    """The keys that lead to a chunk. Later parts of a long definition are found by its symbol."""
    if hit.defines or not hit.symbol:
        return hit.defines
    parts = hit.symbol.split(".")
    return tuple(".".join(parts[at:]) for at in range(max(0, len(parts) - _SUFFIXES), len(parts)))


def edge_between(source: EdgeEnds, target: EdgeEnds, places: Mapping[str, int]) -> Edge | None:
    """The edge from `source` to `target` by the least ambiguous, then the longest key; None without one.

    `places`: what `unambiguous` gives. A page does not lead to itself.
    """
    itself = source.hit.doc_id == target.hit.doc_id
    shared = [key for key in source.keys.keys() & target.names & places.keys() if not (itself and is_page_key(key))]
    if not shared:
        return None
    best = min(shared, key=lambda key: (places[key], -len(key), key))
    return Edge(best, source.keys[best], places[best])


def backwards(edge: Edge) -> Edge:
    """The same edge, followed from its target to its source."""
    return edge._replace(how=_BACKWARDS[edge.how])


def unambiguous(keys: Iterable[str], counts: Mapping[str, int], limit: int) -> dict[str, int]:
    """Key -> places that it may mean, without those that mean several pages or more than `limit` definitions.

    A key that was not counted means one place, if any.
    """
    found = {key: max(1, counts.get(key, 1)) for key in keys}
    return {key: places for key, places in found.items() if places <= (1 if is_page_key(key) else limit)}


def places_of(keys: Sequence[str], namespace: str, store: ChunkStore) -> Mapping[str, int]:
    """Key -> how many places of the namespace it names: pages by their first chunk, labels and code by definition.

    Overloads of one symbol in one file are one place. Keys of nothing are left out.
    Raises: StoreError, TransientError.
    """
    definition = models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key="symbol"))])
    counted: list[models.Condition] = [definition, equals("ordinal", 0)]
    if labels := [key for key in keys if key.startswith(LABEL)]:
        counted.append(one_of("defines", labels))
    flt = models.Filter(must=[equals("namespace", namespace), one_of("defines", keys)], should=counted)
    wanted = frozenset(keys)
    found = list(islice(store.read(flt, ("defines", "doc_id", "symbol")), _MAX_READ + 1))
    if len(found) > _MAX_READ:
        return store.count_values("defines", flt, _MAX_VALUES)
    places = {
        (key, fields["doc_id"], fields.get("symbol"))
        for _, fields in found
        for key in wanted.intersection(fields["defines"])
    }
    return Counter(key for key, _, _ in places)


def asked_direction(question: str) -> Direction | None:
    """`out`: what something leads to is asked for; `back`: what leads to it; None where the words do not tell."""
    out, back = (_direction_words(way).search(question[:_READ_CHARS]) is not None for way in get_args(Direction))
    if out == back:
        return None
    return "out" if out else "back"


def has_direction(how: str, direction: Direction) -> bool:
    """Whether an edge, named as in `Via.how`, has that direction."""
    return (how in _BACKWARDS.values()) == (direction == "back")


@derived
def _direction_words(direction: Direction) -> re.Pattern[str]:
    patterns = (pattern for language in languages() for pattern in language.words.edges.get(direction, ()))
    return re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)
