"""How chunks lead to each other: the keys of an edge and what they are worth. Pure; keys join at search time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shared.models import Hit
from shared.page_keys import is_page_key

#: Suffixes of a qualified name that count as its names, as they are stored in `Chunk.defines`.
_SUFFIXES = 6


class Bridge(NamedTuple):
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


def bridge(source: Ends, target: Ends, meant: Mapping[str, int]) -> Bridge | None:
    """The edge from `source` to `target` by the key that means least else and says most; None without one.

    `meant`: what `unambiguous` gives. A page does not lead to itself.
    """
    itself = source.hit.doc_id == target.hit.doc_id
    shared = [key for key in source.keys.keys() & target.names & meant.keys() if not (itself and of_page(key))]
    if not shared:
        return None
    best = min(shared, key=lambda key: (meant[key], -len(key), key))
    return Bridge(best, source.keys[best], meant[best])


def turned(edge: Bridge) -> Bridge:
    """The same edge told from its target."""
    return edge._replace(how={"call": "called by", "link": "linked by"}.get(edge.how, "mentioned by"))


def unambiguous(keys: Iterable[str], counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Key -> places that it may mean, without those that mean several pages or more than `most` definitions.

    A key that was not counted means one place, if any.
    """
    found = {key: max(1, counts.get(key, 1)) for key in keys}
    return {key: places for key, places in found.items() if places <= (1 if of_page(key) else most)}
