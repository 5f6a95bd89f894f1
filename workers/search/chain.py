"""How passages continue one another. Pure: bridges are names in the best passages, a chain is what one adds.

A question with several hops is not answered by the passages most like it: the second fact stands in a page that only
the first page names. So a candidate is worth what it says about the question itself, plus what it says about a name
that a good passage brought up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from pathlib import PurePosixPath
from typing import NamedTuple

from shared.language.names import bare, names_of
from shared.language.sentences import sentences
from shared.language.text import flat, terms
from shared.models import Hit
from shared.page_keys import is_page_key, title_key
from shared.rerankers.lexical import as_terms, candidate_idf

#: What counts in a chain, besides the worth of the passage that brought the name up: how well the name is the page's
#: own title, how much of the rest of the question the page has, how much the sentence with the name is about the
#: question. Taken together on six sets; the optimum is flat (docs/quality.md).
_TITLE, _GAIN, _ASKS, _LEAST = 0.6, 0.6, 0.8, 0.05
#: What a title counts that only holds the name; the power of the number of chunks that share a page key, by which that
#: counts less; the power of 1 / log2(1 + n) for a name that n candidates hold.
_IN_TITLE, _SHARED, _RARITY = 0.5, 1.0, 0.75


class NameBridge(NamedTuple):
    """A name that the passage `parent` brings up; `needle` is the name as `flat` text.

    `worth` is that passage's score, `asks` the share of the question that stands in the sentence with the name: 0..1.
    `keys` lead to the pages of that name.
    """

    name: str
    needle: str
    parent: str
    worth: float
    asks: float
    keys: tuple[str, ...] = ()


class Link(NamedTuple):
    """A candidate's best chain: its score, from 0 and rarely above 1, and over which bridge."""

    score: float
    bridge: NameBridge


@dataclass(frozen=True, slots=True)
class _Reading:
    title: str
    text: str
    words: frozenset[str]


class ChainScorer:
    """A question against a set of candidates: the weights of its terms are those among the candidates."""

    def __init__(self, text: str, hits: Sequence[Hit]) -> None:
        self.flat = flat(text)
        self._readings = {hit.chunk_id: _reading(hit.title, hit.heading, hit.text) for hit in hits}
        self._defines = {hit.chunk_id: hit.defines for hit in hits}
        self._idf = candidate_idf(terms(text), [reading.words for reading in self._readings.values()])
        self._total = sum(self._idf.values()) or 1.0

    def bridges(self, hit: Hit, worth: float) -> list[NameBridge]:
        """The names in a passage (with its score) that the question does not have, the likeliest first."""
        found: dict[str, NameBridge] = {}
        for name, key, asks in self._named(hit):
            needle = flat(name)
            if needle.strip() and needle not in self.flat and not needle.replace(" ", "").isdecimal():
                known = found.get(needle)
                keys = (*known.keys, key) if known else (key,)
                found[needle] = NameBridge(name, needle, hit.chunk_id, worth, asks, tuple(dict.fromkeys(keys)))
        return sorted(found.values(), key=lambda bridge: (-bridge.asks, bridge.needle))

    def links(self, bridges: Sequence[NameBridge]) -> dict[str, Link]:
        """Chunk id -> its best chain over one of these bridges, for every candidate that holds one of the names."""
        best: dict[str, Link] = {}
        for bridge in bridges:
            keys = frozenset(bridge.keys)
            pages = {chunk_id for chunk_id, defines in self._defines.items() if not keys.isdisjoint(defines)}
            holders = {
                c: reading for c, reading in self._readings.items() if c in pages or bridge.needle in reading.text
            }
            rarity = (1 / log2(1 + max(2, len(holders)))) ** _RARITY
            parent = self._readings[bridge.parent].words
            before = self._share(parent)
            for chunk_id, reading in holders.items():
                if chunk_id == bridge.parent:
                    continue
                gain = self._share(parent | reading.words) - before
                titled = len(pages) ** -_SHARED if chunk_id in pages else _titled(bridge.needle, reading.title)
                kind = _TITLE * titled + _GAIN * gain + _ASKS * bridge.asks + _LEAST
                score = bridge.worth * rarity * kind
                if chunk_id not in best or score > best[chunk_id].score:
                    best[chunk_id] = Link(score, bridge)
        return best

    def _named(self, hit: Hit) -> Iterator[tuple[str, str, float]]:
        """Names as written, their keys, and the share of the question in the sentence that has each.

        The page's own title stands for all of it: pages that name this one lead back to it. Links whose text is not
        the title of their page go by that title.
        """
        reading = self._readings[hit.chunk_id]
        whole = self._share(reading.words)
        said = [(flat(sentence), self._share(frozenset(terms(sentence)))) for sentence in sentences(hit.text)]
        linked = [(_called(key), key) for key in (*hit.refs, *hit.mentions) if is_page_key(key)]
        for name, key in (*((name, title_key(name)) for name in names_of(hit.title, hit.text)), *linked):
            needle = flat(bare(name))
            own = needle == reading.title
            yield bare(name), key, whole if own else max((share for text, share in said if needle in text), default=0.0)

    def _share(self, words: frozenset[str]) -> float:
        return sum(weight for term, weight in self._idf.items() if term in words) / self._total


def _called(key: str) -> str:
    """What a page is called by its key: the title, the label, or the file's name."""
    kind, _, name = key.partition(":")
    return PurePosixPath(name).stem if kind == "path" else name


def _titled(needle: str, title: str) -> float:
    if not title or needle not in title:
        return 0.0
    return 1.0 if needle == title else _IN_TITLE


@lru_cache(maxsize=1024)
def _reading(title: str, heading: str, text: str) -> _Reading:
    words = as_terms(title, heading, text).words
    return _Reading(flat(bare(title)) if title else "", flat(f"{title} {text}"), words)
