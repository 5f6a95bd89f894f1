"""A text's tokens, and what is read off them: values, units, clauses, places. Pure, linear."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import pairwise, starmap, zip_longest
from string import ascii_letters
from typing import NamedTuple

from shared.grounding.numerals import Measure, sign_before, unit_behind, unit_of
from shared.language import derived, languages
from shared.language.sentences import abbreviation
from shared.language.text import month_number, terms

_SENTENCE_END = re.compile(r"[.!?](?=[\s\"'”’)\]]|$)|[。！？\n]")
#: The separators of clauses: what stands in brackets or between two of them may be left out of a sentence.
CLAUSE_MARKS = re.compile(r"[,;:()\[\]，；：、（）—–\n.!?。！？]")
#: What parts two statements of one sentence.
APART = re.compile(r"[;；]")
_CLAUSE_END = re.compile(r"[,;:，；：—()（）](?!\d)")
_BRACKETS = re.compile(r"[()（）]")
#: How wide a plain word, a CJK character, and the end of a clause or a sentence are; a word of weight is 1.
_PLAIN, _CHARACTER, _CLAUSE, _SENTENCE = 0.4, 0.5, 2.0, 8.0
#: What stands in brackets is so far from what stands around them.
_BRACKET = 3.0


_ABBREVIATED = 3
#: Characters before a full stop in which an abbreviation is looked for.
_LOOK_BACK = 12
#: A denial speaks of the word behind it and of so many behind that.
_CONTEXT = 2


class TokenKind(StrEnum):
    """What a token is compared as."""

    WORD = "word"
    NUMBER = "number"
    CJK = "cjk"
    SIGN = "sign"


class Token(NamedTuple):
    """`text[start:end]` of its text. `key` is what it is compared by; `plain`: it says nothing of its own.

    `name`: written with a capital that no sentence's start explains. `denies`: part of a negation. `value`: the number
    that it is; None for a word, and for 10:30.
    """

    key: str
    start: int
    end: int
    kind: TokenKind
    plain: bool = False
    name: bool = False
    denies: bool = False
    value: Decimal | None = None


@dataclass(frozen=True, eq=False)
class TokenText:
    """A text and its tokens. `low` has the text's length, in lower case and in the tables' spelling."""

    text: str
    low: str
    tokens: tuple[Token, ...]

    @cached_property
    def keys(self) -> list[str]:
        """The keys of all tokens, in order."""
        return [token.key for token in self.tokens]

    @cached_property
    def known(self) -> frozenset[str]:
        """All keys."""
        return frozenset(self.keys)

    @cached_property
    def names(self) -> frozenset[str]:
        """The keys of all names."""
        return frozenset(token.key for token in self.tokens if token.name)

    def is_named(self, unit: str) -> bool:
        """Whether a unit is one of a name, or of a script in which names show by nothing."""
        return not unit.isascii() or any(self.tokens[place].name for place in self.at.get(unit, ()))

    def with_names(self, names: frozenset[str]) -> TokenText:
        """The same text where words with a capital are names that another text knows as such."""
        found = {n for n, one in enumerate(self.tokens) if one.key in names and self._may_name(one)} if names else set()
        if not found:
            return self
        named = (one._replace(name=True, plain=False) if n in found else one for n, one in enumerate(self.tokens))
        return TokenText(self.text, self.low, tuple(named))

    def told_as(self, other: TokenText) -> TokenText:
        """The same text with another one's words where it has others that say the same: founded, established."""
        found: dict[int, str] = {}
        for place, token in enumerate(self.tokens):
            if token.kind is not TokenKind.WORD or token.name or token.value is not None or token.key in other.known:
                continue
            if stem_of(token.key) in other.stems:
                continue
            if key := next((one for one in _alike(token.key) if one in other.known), None):
                found[place] = key
        if not found:
            return self
        tokens = (one._replace(key=found[n]) if n in found else one for n, one in enumerate(self.tokens))
        return TokenText(self.text, self.low, tuple(tokens))

    def _may_name(self, token: Token) -> bool:
        return not token.name and token.kind is TokenKind.WORD and self.text[token.start].isupper()

    @cached_property
    def keyed(self) -> dict[str, list[int]]:
        """The places of each key."""
        found: dict[str, list[int]] = {}
        for place, key in enumerate(self.keys):
            if (places := found.get(key)) is None:
                found[key] = [place]
            else:
                places.append(place)
        return found

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words, and the pairs of neighbouring CJK characters."""
        return frozenset(stem_of(key) for key in self.known) | frozenset(cjk_pairs(self.tokens))

    @cached_property
    def units(self) -> tuple[str, ...]:
        """What each token is looked for as: a stem, two CJK characters, a number; "" for one that says nothing."""
        return tuple(starmap(_unit_of, zip_longest(self.tokens, self.tokens[1:])))

    @cached_property
    def at(self) -> dict[str, list[int]]:
        """The places of each unit."""
        found: dict[str, list[int]] = {}
        for place, unit in enumerate(self.units):
            if unit:
                found.setdefault(unit, []).append(place)
        return found

    @cached_property
    def clauses(self) -> list[tuple[int, int]]:
        """The clauses of all sentences, as ranges of token numbers."""
        found, first, last, numbers = [], 0, len(self.tokens), self.sentence_numbers
        for number, gap in enumerate(self.gaps, 1):
            if number == last or numbers[number] != numbers[number - 1] or (gap and _CLAUSE_END.search(self.low, *gap)):
                found.append((first, number))
                first = number
        return found

    @cached_property
    def gaps(self) -> list[tuple[int, int] | None]:
        """Where something stands behind each token before the next one; None for nothing or a space."""
        ends = [*(token.start for token in self.tokens[1:]), len(self.low)] if self.tokens else []
        return [
            None if start == end or (end - start == 1 and self.low[start] == " ") else (start, end)
            for start, end in zip((token.end for token in self.tokens), ends, strict=True)
        ]

    @cached_property
    def parted(self) -> list[bool]:
        """For each token, whether a clause ends behind it or a bracket stands there."""
        found = [gap is not None and CLAUSE_MARKS.search(self.low, *gap) is not None for gap in self.gaps]
        return [*found[:-1], True] if found else []

    @cached_property
    def clause_units(self) -> list[frozenset[str]]:
        """The units of each clause."""
        return [frozenset(self.units[first:last]) for first, last in self.clauses]

    @cached_property
    def in_clauses(self) -> Counter[str]:
        """In how many clauses each unit stands."""
        return Counter(unit for units in self.clause_units for unit in units)

    @cached_property
    def denies(self) -> bool:
        """Whether anything is denied."""
        return bool(self.denied)

    @cached_property
    def denied(self) -> frozenset[int]:
        """The places of the tokens right behind a denial, and of the two behind these."""
        return frozenset(
            place
            for denying, token in enumerate(self.tokens)
            if token.denies
            for place in range(denying + 1, denying + 2 + _CONTEXT)
        )

    @cached_property
    def clause_of(self) -> list[int]:
        """For each token, the number of its clause."""
        return [number for number, (first, last) in enumerate(self.clauses) for _ in range(first, last)]

    @cached_property
    def pronouns(self) -> list[int]:
        """The places of the words that stand for a name."""
        return [place for place, token in enumerate(self.tokens) if token.key in _pronouns()]

    @cached_property
    def bracketed(self) -> frozenset[int]:
        """The places of the tokens that stand in brackets."""
        found, depth = [], 0
        gaps = [(0, self.tokens[0].start) if self.tokens else None, *self.gaps] if _BRACKETS.search(self.low) else []
        for number, gap in enumerate(gaps[: len(self.tokens)]):
            for mark in _BRACKETS.findall(self.low, *gap) if gap else ():
                depth = depth + 1 if mark in "(（" else max(0, depth - 1)
            if depth:
                found.append(number)
        return frozenset(found)

    @cached_property
    def places(self) -> tuple[float, ...]:
        """How far each token is from the text's start: ends of clauses and sentences are wide, brackets are not."""
        found, place, opened = [], 0.0, [0.0]
        gaps = [(0, self.tokens[0].start) if self.tokens else None, *self.gaps]
        for number, token in enumerate(self.tokens):
            for mark in _BRACKETS.findall(self.low, *gap) if (gap := gaps[number]) else ():
                if mark in "(（":
                    opened.append(place)
                    place += _BRACKET
                elif len(opened) > 1:
                    place = opened.pop()
            if number and self.sentence_numbers[number] != self.sentence_numbers[number - 1]:
                place += _SENTENCE
            elif number and self.parted[number - 1]:
                place += _CLAUSE
            place += _PLAIN if token.plain else _CHARACTER if token.kind is TokenKind.CJK else 1.0
            found.append(place)
        return tuple(found)

    @cached_property
    def values(self) -> frozenset[Decimal]:
        """All numbers, also in the base of their units, and the numbers of months."""
        found = {token.value for token in self.tokens if token.value is not None}
        starts = _month_starts()
        months = (month_of(key) for key in self.known if key[:_ABBREVIATED] in starts)
        found.update(Decimal(month) for month in months if month)
        return frozenset(found)

    @cached_property
    def valued(self) -> dict[Decimal, list[int]]:
        """The places of each number."""
        found: dict[Decimal, list[int]] = {}
        for place, token in enumerate(self.tokens):
            if token.value is not None:
                found.setdefault(token.value, []).append(place)
        return found

    @cached_property
    def counted(self) -> dict[int, Measure]:
        """The numbers that count one of the units of the tables, by their places."""
        return {
            place: unit
            for place, token in enumerate(self.tokens)
            if token.kind is TokenKind.NUMBER
            and (
                unit := sign_before(self.low, token.start)
                or unit_behind(self.low, token.end)
                or next(
                    (unit_of(one.key) for one in self.tokens[place + 1 : place + 2] if one.start == token.end), None
                )
            )
        }

    def word(self, place: int) -> str:
        """The word that a token is written as, whole where it is part of one: a half is 50 and a sign."""
        token, end = self.tokens[place], self.tokens[place].end
        if token.kind is TokenKind.NUMBER and self.low[token.start].isascii() and self.low[token.start].isalpha():
            end += len(self.text[end:]) - len(self.text[end:].lstrip(ascii_letters))
        return self.text[token.start : end]

    def slice(self, start: int, end: int) -> str:
        """The lower-case text of the tokens `start`..`end`; "" without any."""
        if start >= end:
            return ""
        return self.low[self.tokens[start].start : self.tokens[end - 1].end]

    @cached_property
    def sentences(self) -> list[tuple[Token, ...]]:
        """The tokens sentence by sentence."""
        found: list[tuple[Token, ...]] = []
        first = 0
        for end in (*self._ends, len(self.low)):
            last = bisect_left(self.tokens, end, key=lambda token: token.start)
            if last > first:
                found.append(self.tokens[first:last])
            first = last
        return found

    @cached_property
    def sentence_numbers(self) -> list[int]:
        """For each token, which sentence it stands in."""
        return [number for number, sentence in enumerate(self.sentences) for _ in sentence]

    def sentence_start(self, place: int) -> int:
        """Where the sentence that holds character `place` begins."""
        return max((end for end in self._ends if end <= place), default=0)

    @cached_property
    def _ends(self) -> list[int]:
        return sentence_ends(self.text)


def sentence_ends(text: str) -> list[int]:
    """Where the sentences of a text end; a full stop behind an abbreviation or one letter ends none."""
    short = abbreviation()
    return [
        end.end()
        for end in _SENTENCE_END.finditer(text)
        if end[0] != "." or not short.search(text, max(0, end.start() - _LOOK_BACK), end.start())
    ]


@lru_cache(maxsize=32_768)
def stem_of(key: str) -> str:
    """The stem of a word's key, of words that say the same the same one; other keys as they are."""
    if key.startswith("#") or not key.isalpha():
        return _senses().get(key, key)
    stem = _stem(key)
    return _senses().get(stem, stem)


def _stem(key: str) -> str:
    found = terms(key)
    return found[0] if len(found) == 1 else key


def _unit_of(token: Token, behind: Token | None) -> str:
    if token.plain or token.kind is TokenKind.SIGN:
        return ""
    if token.kind is not TokenKind.CJK:
        return stem_of(token.key)
    if behind is None or behind.kind is not TokenKind.CJK or behind.start != token.end or behind.plain:
        return ""
    return token.key + behind.key


def cjk_pairs(tokens: Iterable[Token]) -> Iterator[str]:
    """Neighbouring CJK characters, two by two."""
    for one, other in pairwise(tokens):
        if one.kind is TokenKind.CJK and other.kind is TokenKind.CJK and one.end == other.start:
            yield one.key + other.key


@derived
def _senses() -> dict[str, str]:
    """Stem -> the first of the stems that say the same; rows that share a word are one."""
    found: dict[str, str] = {}
    for language in languages():
        for row in language.claims.same:
            stems = [_stem(word) for word in row]
            first = next((found[stem] for stem in stems if stem in found), stems[0])
            found.update(dict.fromkeys(stems, first))
    return found


@derived
def _alike(key: str) -> tuple[str, ...]:
    """The words of all rows of the tables that have a word or another form of it."""
    stem = _stem(key)
    return tuple(word for row in _same_rows() if stem in row[1] for word in row[0])


@derived
def _same_rows() -> list[tuple[tuple[str, ...], frozenset[str]]]:
    rows = [row for language in languages() for row in language.claims.same]
    return [(row, frozenset(map(_stem, row))) for row in rows]


@derived
def light_words() -> frozenset[str]:
    """The words that stand for many others, so that one of them in a claim changes little."""
    return frozenset(word for language in languages() for word in language.claims.light)


@derived
def _pronouns() -> frozenset[str]:
    return frozenset(word for language in languages() for word in language.claims.pronouns)


def month_of(word: str) -> int:
    """The number of a month's name, 0 for any other word."""
    return month_number(word) if word[:_ABBREVIATED] in _month_starts() else 0


@derived
def _month_starts() -> frozenset[str]:
    return frozenset(name[:_ABBREVIATED] for language in languages() for name in language.dates.months)
