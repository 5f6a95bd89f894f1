"""How chunks lead to each other: the keys of an edge, and how many places each may mean. Keys join at search time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, get_args

from qdrant_client import models

from shared.language import derived, languages
from shared.models import Hit
from shared.store import ChunkStore
from shared.store.page_keys import LABEL, is_page_key
from shared.store.schema import equals, one_of

#: Suffixes of a qualified name that count as its names, as they are stored in `Chunk.defines`.
_SUFFIXES = 6
#: Chunks that `places_of` reads. Reading a few hundred costs a hundredth of a count over all values of a field, which
#: looks at every name of the collection (embedded store, 18,000 chunks, 75,000 names: 0.4 ms against 600).
_READ = 2000
#: Values that such a count returns: the frequent ones come first, what is left out is rare.
_COUNTED = 5000


class Edge(NamedTuple):
    """The key over which one chunk leads to another. `places`: how many definitions the key may mean."""

    key: str
    how: str
    places: int


class Ends(NamedTuple):
    """A chunk with the keys that it leads to, each with how (link, mention, call), and the names it goes by."""

    hit: Hit
    keys: Mapping[str, str]
    names: frozenset[str]


def ends(hit: Hit) -> Ends:
    """Both ends of a chunk's edges. A full name beats the bare one that stands beside it."""
    keys = dict.fromkeys(hit.mentions, "mention")
    keys |= {key: "link" if of_page(key) else "call" for key in hit.refs}
    longer = {key[at + 1 :] for key in keys if not of_page(key) for at, sign in enumerate(key) if sign == "."}
    return Ends(hit, {key: how for key, how in keys.items() if key not in longer}, frozenset(names(hit)))


def names(hit: Hit) -> tuple[str, ...]:
    """The keys that lead to a chunk. The later parts of a long definition go by its symbol."""
    if hit.defines or not hit.symbol:
        return hit.defines
    parts = hit.symbol.split(".")
    return tuple(".".join(parts[at:]) for at in range(max(0, len(parts) - _SUFFIXES), len(parts)))


def of_page(key: str) -> bool:
    """True for the key of a page, False for a name in code."""
    return is_page_key(key)


def edge_between(source: Ends, target: Ends, meant: Mapping[str, int]) -> Edge | None:
    """The edge from `source` to `target` by the key that means least else and says most; None without one.

    `meant`: what `unambiguous` gives. A page does not lead to itself.
    """
    itself = source.hit.doc_id == target.hit.doc_id
    shared = [key for key in source.keys.keys() & target.names & meant.keys() if not (itself and of_page(key))]
    if not shared:
        return None
    best = min(shared, key=lambda key: (meant[key], -len(key), key))
    return Edge(best, source.keys[best], meant[best])


def turned(edge: Edge) -> Edge:
    """The same edge told from its target."""
    return edge._replace(how={"call": "called by", "link": "linked by"}.get(edge.how, "mentioned by"))


def unambiguous(keys: Iterable[str], counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Key -> places that it may mean, without those that mean several pages or more than `most` definitions.

    A key that was not counted means one place, if any.
    """
    found = {key: max(1, counts.get(key, 1)) for key in keys}
    return {key: places for key, places in found.items() if places <= (1 if of_page(key) else most)}


def places_of(keys: Sequence[str], namespace: str, store: ChunkStore) -> Mapping[str, int]:
    """Key -> the places in the namespace that go by it: pages by their first chunk, labels and code by definition.

    Overloads of one symbol in one file are one place. Keys that nothing goes by are left out.
    Raises: StoreError, TransientError.
    """
    definition = models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key="symbol"))])
    first = equals("ordinal", 0)
    where = equals("namespace", namespace)
    among = one_of("defines", keys)
    counted: list[models.Condition] = [definition, first]
    if labels := [key for key in keys if key.startswith(LABEL)]:
        counted.append(one_of("defines", labels))
    flt = models.Filter(must=[where, among], should=counted)
    wanted = frozenset(keys)
    found = list(islice(store.read(flt, ("defines", "doc_id", "symbol")), _READ + 1))
    if len(found) > _READ:
        return store.count_values("defines", flt, _COUNTED)
    places = {
        (key, fields["doc_id"], fields.get("symbol"))
        for _, fields in found
        for key in wanted.intersection(fields["defines"])
    }
    return Counter(key for key, _, _ in places)


# --- In which direction along calls and links a question looks: "what does X call", "what calls X". Pure.

Direction = Literal["out", "back"]

#: As much of a question as is read.
_READ_CHARS = 500
#: How an edge is told that was followed against its direction.
_TURNED = frozenset({"called by", "linked by", "mentioned by"})


def asked_direction(question: str) -> Direction | None:
    """`out`: what something leads to is asked for; `back`: what leads to it; None where the words do not tell."""
    read = question[:_READ_CHARS]
    out, back = (_asked(direction).search(read) is not None for direction in get_args(Direction))
    if out == back:
        return None
    return "out" if out else "back"


def has_direction(how: str, direction: Direction) -> bool:
    """Whether an edge, told as in `Via.how`, has that direction."""
    return (how in _TURNED) == (direction == "back")


@derived
def _asked(direction: Direction) -> re.Pattern[str]:
    patterns = (pattern for language in languages() for pattern in language.words.edges.get(direction, ()))
    return re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)
