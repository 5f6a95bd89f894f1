"""Where a claim stands in a passage: the same words in the same order, and what differs between them. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shared.grounding.texts import Token, TokenText

#: From this share of a claim's tokens on it repeats its source, and each deviation is looked at by itself.
NEAR = 0.6
#: Tokens of a passage beyond the claim's own number that may stand between its words: brackets, apposed clauses.
_SLACK = 48
#: So many tokens in a row are no chance: they are taken from another sentence too.
_PHRASE = 4
#: In a piece of so many tokens of the passage each one stands where it belongs.
_PIECE = 7
#: A claim is looked for in so many clauses at most.
_MOST_CLAUSES = 4


_Span = tuple[int, int]


class _Block(NamedTuple):
    """`size` tokens that claim and passage share, from these places on."""

    said: int
    source: int
    size: int


@dataclass(frozen=True, slots=True)
class Deviation:
    """Where claim and passage differ between the same words: the claim says `said`, the passage says `source`.

    `said` and `source` are ranges of token numbers in the claim and in the passage; one of them may be empty.
    """

    said: tuple[int, int]
    source: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Alignment:
    """A claim beside the part of a passage that reads most like it.

    `matched`: the claim's tokens that stand there, in order. `start`, `end`: that part, in tokens of the passage.
    `anchored`: the places of the claim's tokens that stand there among so many neighbours that they belong together.
    `phrase`: where the longest piece of them begins in the passage, if it is too long for chance.
    """

    claim: TokenText
    passage: TokenText
    matched: int
    start: int
    end: int
    deviations: tuple[Deviation, ...]
    anchored: frozenset[int] = frozenset()
    phrase: int | None = None

    @property
    def share(self) -> float:
        """The share of the claim's tokens that stand in the passage in their order, 0..1."""
        return self.matched / max(1, len(self.claim.tokens))

    @cached_property
    def evidence(self) -> tuple[int, ...]:
        """The numbers of the passage's clauses that together have most of the claim's words, the best one first."""
        wanted = {unit for unit in self.claim.units if unit in self.passage.at}
        standing, common = self.passage.clause_units, self.passage.in_clauses
        least = max(2.0, len(wanted) / 4)
        chosen: list[int] = []
        while wanted and len(chosen) < _MOST_CLAUSES:
            scores = [sum(1 / common[unit] for unit in wanted & units) for units in standing]
            best = max(range(len(scores)), key=scores.__getitem__)
            if chosen and len(wanted & standing[best]) < least:
                break
            chosen.append(best)
            wanted -= standing[best]
        if self.phrase is not None and (clause := self.passage.clause_of[self.phrase]) not in chosen:
            chosen.append(clause)
        return tuple(chosen)

    def clause(self, number: int) -> str:
        """The lower-case text of one clause of the passage."""
        return self.passage.slice(*self.passage.clauses[number])

    def said(self, deviation: Deviation) -> tuple[Token, ...]:
        """What the claim says there."""
        return self.claim.tokens[slice(*deviation.said)]

    def source(self, deviation: Deviation) -> tuple[Token, ...]:
        """What the passage says there."""
        return self.passage.tokens[slice(*deviation.source)]


def align(claim: TokenText, passage: TokenText) -> Alignment:
    """The best place of `claim` in `passage`."""
    longest = _longest(claim.keys, passage.keyed, (0, len(claim.keys)), (0, len(passage.keys)))
    if not longest.size:
        return Alignment(claim, passage, 0, 0, 0, ())
    first = max(0, longest.source - longest.said - _SLACK)
    last = min(len(passage.keys), longest.source + len(claim.keys) - longest.said + _SLACK)
    blocks = _together(_blocks(claim.keys, passage.keyed, (first, last)), passage.sentence_numbers)
    piece = max(blocks, key=lambda block: block.size)
    return Alignment(
        claim,
        passage,
        phrase=piece.source if piece.size >= _PHRASE else None,
        matched=sum(block.size for block in blocks),
        start=blocks[0].source,
        end=blocks[-1].source + blocks[-1].size,
        deviations=tuple(_deviations(blocks, len(claim.keys), passage.sentence_numbers)),
        anchored=frozenset(
            place for block in blocks if block.size >= _PIECE for place in range(block.said, block.said + block.size)
        ),
    )


def _longest(keys: Sequence[str], keyed: Mapping[str, Sequence[int]], said: _Span, source: _Span) -> _Block:
    """The longest piece that is the same in these ranges of claim and passage, the first of several (difflib's).

    `keyed`: the places of each key in the passage, which one claim after another is laid beside.
    """
    best, (begin, end) = _Block(said[0], source[0], 0), source
    before: dict[int, int] = {}
    for place in range(*said):
        sizes: dict[int, int] = {}
        standing = keyed.get(keys[place], ())
        for other in standing[bisect_left(standing, begin) :] if begin else standing:
            if other >= end:
                break
            size = sizes[other] = before.get(other - 1, 0) + 1
            if size > best.size:
                best = _Block(place - size + 1, other - size + 1, size)
        before = sizes
    return best


def _blocks(keys: Sequence[str], keyed: Mapping[str, Sequence[int]], source: _Span) -> list[_Block]:
    """All pieces that are the same, in order: the longest one, then those before and behind it in both texts."""
    left: list[tuple[_Span, _Span]] = [((0, len(keys)), source)]
    found: list[_Block] = []
    while left:
        said, there = left.pop()
        block = _longest(keys, keyed, said, there)
        if not block.size:
            continue
        found.append(block)
        if said[0] < block.said and there[0] < block.source:
            left.append(((said[0], block.said), (there[0], block.source)))
        ends = block.said + block.size, block.source + block.size
        if ends[0] < said[1] and ends[1] < there[1]:
            left.append(((ends[0], said[1]), (ends[1], there[1])))
    return sorted(found)


def _together(blocks: list[_Block], sentences: Sequence[int]) -> list[_Block]:
    """Without the few words that happen to stand in another sentence of the passage than the ones beside them."""
    middle = max(range(len(blocks)), key=lambda place: blocks[place].size)
    kept = [blocks[middle]]
    for block in blocks[middle + 1 :]:
        if block.size >= _PHRASE or sentences[block.source] == sentences[kept[-1].source + kept[-1].size - 1]:
            kept.append(block)
    for block in reversed(blocks[:middle]):
        if block.size >= _PHRASE or sentences[block.source + block.size - 1] == sentences[kept[0].source]:
            kept.insert(0, block)
    return kept


def _deviations(blocks: list[_Block], length: int, sentences: Sequence[int]) -> Iterator[Deviation]:
    """What differs before, between and behind the blocks; at both ends, as much of the passage as the claim has."""
    said, source = 0, blocks[0].source
    if missing := blocks[0].said:
        before = source - bisect_left(sentences, sentences[source])
        source -= min(before, missing + 1)
    for block in blocks:
        if block.said > said or (block.source > source and said):
            yield Deviation((said, block.said), (source, block.source))
        said, source = block.said + block.size, block.source + block.size
    if said < length:
        behind = bisect_right(sentences, sentences[source - 1]) - source
        yield Deviation((said, length), (source, source + min(behind, length - said + 1)))
