"""A text as comparable tokens with their places: words, numbers by their value, single CJK characters. Pure, linear."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import pairwise

from shared.language import derived, languages
from shared.language.text import CJK, month_number, normalised, terms, without_accents

# Letters before digits are one word (CD4, v2); digits before letters are a number and its unit (5km, 26th).
_TOKEN = re.compile(
    rf"(?P<number>\d+(?:[.,:]\d+)*)|(?P<cjk>[{CJK}])|(?P<word>[^\W\d_{CJK}]+(?:['’][^\W\d_{CJK}]+|\d[^\W_{CJK}]*)*)"
    r"|(?P<sign>[%$€£¥℃°])"
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"'”’)\]]|$)|[。！？\n]")
#: The separators of clauses: what stands in brackets or between two of them may be left out of a sentence.
CLAUSE_MARKS = re.compile(r"[,;:()\[\]，；：、（）—–\n.!?。！？]")


class TokenKind(StrEnum):
    """What a token is compared as."""

    WORD = "word"
    NUMBER = "number"
    CJK = "cjk"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Token:
    """`text[start:end]` of its text. `key` is what it is compared by; `plain`: it says nothing of its own.

    `name`: written with a capital that no sentence's start explains. `denies`: part of a negation.
    """

    key: str
    start: int
    end: int
    kind: TokenKind
    plain: bool = False
    name: bool = False
    denies: bool = False

    @property
    def value(self) -> Decimal | None:
        """The number that it is; None for a word, and for 10:30."""
        return Decimal(self.key[1:]) if self.key.startswith("#") else None


@dataclass(frozen=True)
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
    def stems(self) -> frozenset[str]:
        """The stems of all words, and the pairs of neighbouring CJK characters."""
        return frozenset(stem_of(key) for key in self.known) | frozenset(cjk_pairs(self.tokens))

    @cached_property
    def values(self) -> frozenset[Decimal]:
        """All numbers, those with a scale word behind them both with and without it, and the numbers of months."""
        return frozenset(self._values())

    def _values(self) -> Iterator[Decimal]:
        for place, token in enumerate(self.tokens):
            if (value := token.value) is not None:
                yield value
                yield from scaled(value, self.tokens[place + 1 : place + 2])
            elif token.kind is TokenKind.WORD and (month := _month(token.key)):
                yield Decimal(month)

    def slice(self, start: int, end: int) -> str:
        """The lower-case text of the tokens `start`..`end`; "" without any."""
        if start >= end:
            return ""
        return self.low[self.tokens[start].start : self.tokens[end - 1].end]

    @cached_property
    def sentences(self) -> list[tuple[Token, ...]]:
        """The tokens sentence by sentence."""
        ends = [found.end() for found in _SENTENCE_END.finditer(self.low)]
        found: list[tuple[Token, ...]] = []
        first = 0
        for end in (*ends, len(self.low)):
            last = bisect_left(self.tokens, end, key=lambda token: token.start)
            if last > first:
                found.append(self.tokens[first:last])
            first = last
        return found

    @cached_property
    def sentence_numbers(self) -> list[int]:
        """For each token, which sentence it stands in."""
        return [number for number, sentence in enumerate(self.sentences) for _ in sentence]

    def values_in(self, start: int, end: int) -> set[Decimal]:
        """The numbers of the tokens `start`..`end`, each times the scale word behind it, if any."""
        found: set[Decimal] = set()
        for place in range(start, end):
            if (value := self.tokens[place].value) is not None:
                found.update(tuple(scaled(value, self.tokens[place + 1 : place + 2])) or (value,))
        return found

    def sentence_start(self, place: int) -> int:
        """Where the sentence that holds character `place` begins."""
        ends = [found.end() for found in _SENTENCE_END.finditer(self.low, 0, place)]
        return ends[-1] if ends else 0


@lru_cache(maxsize=512)
def tokens_of(text: str) -> TokenText:
    """The tokens of `text`. The passages of an answer are read once for all of its sentences."""
    low = _lower(text)
    denied = [found.span() for language in languages() for found in language.claims.negation.finditer(low)]
    capitals_only_at_starts = _starts(text)
    tokens = []
    for found in _TOKEN.finditer(low):
        kind = TokenKind(found.lastgroup or "word")
        start, end = found.span()
        key = _key(found[0], kind)
        if key.startswith("#"):
            kind = TokenKind.NUMBER
        name = kind is TokenKind.WORD and text[start].isupper() and start not in capitals_only_at_starts
        denies = any(start < last and first < end for first, last in denied)
        tokens.append(Token(key, start, end, kind, key in _plain() and not name, name, denies))
    return TokenText(text, low, tuple(tokens))


def scaled(value: Decimal, behind: Iterable[Token]) -> Iterator[Decimal]:
    """`value` times the scale word that stands behind it."""
    for token in behind:
        if token.key in _scales():
            yield value * _scales()[token.key]


def is_scale(token: Token) -> bool:
    """Whether the token multiplies the number before it."""
    return token.key in _scales()


@lru_cache(maxsize=32_768)
def stem_of(key: str) -> str:
    """The stem of a word's key; other keys as they are."""
    if key.startswith("#") or not key.isalpha():
        return key
    found = terms(key)
    return found[0] if len(found) == 1 else key


def cjk_pairs(tokens: Iterable[Token]) -> Iterator[str]:
    """Neighbouring CJK characters, two by two."""
    for one, other in pairwise(tokens):
        if one.kind is TokenKind.CJK and other.kind is TokenKind.CJK and one.end == other.start:
            yield one.key + other.key


def _lower(text: str) -> str:
    """Lower case, narrow digits and letters, tables' spelling; of the same length, so that places are the same."""
    if text.isascii():
        return text.lower()
    folded = "".join(_low_char(char) for char in text)
    spelt = normalised(folded)
    return spelt if len(spelt) == len(text) else folded


@lru_cache(maxsize=8192)
def _low_char(char: str) -> str:
    low = unicodedata.normalize("NFKC", char).lower()
    return low if len(low) == 1 else char


def _key(token: str, kind: TokenKind) -> str:
    if kind is TokenKind.NUMBER:
        return _number_key(token)
    if kind is TokenKind.WORD:
        token = without_accents(token.replace("’", "'"))
        token = token.removesuffix("'s")
    number = _number_words().get(token)
    return f"#{number}" if number is not None else token


def _number_key(token: str) -> str:
    try:
        value = Decimal(token.replace(",", "") if _GROUPED.fullmatch(token) else token)
    except InvalidOperation:
        return token  # 10:30, 1,2,3
    return f"#{value.normalize():f}"


def _starts(text: str) -> frozenset[int]:
    """The places of words that have a capital because a sentence or a quotation begins there."""
    places = {len(text) - len(text.lstrip(" \t\n\"'“‘(["))}
    for found in _SENTENCE_END.finditer(text):
        behind = text[found.end() : found.end() + 8]
        places.add(found.end() + len(behind) - len(behind.lstrip(" \t\n\"'“‘([")))
    return frozenset(place for place in places if _is_known_word(text, place))


def _is_known_word(text: str, place: int) -> bool:
    """A capital at a sentence's start is that of a name all the same where another one follows, or a capital in it."""
    found = _TOKEN.match(text, place)
    if found is None:
        return False
    behind = text[found.end() : found.end() + 2].lstrip(" -")
    return found[0].lower() in _plain() or not (behind[:1].isupper() or found[0][1:] != found[0][1:].lower())


@derived
def _plain() -> frozenset[str]:
    found: set[str] = set()
    for language in languages():
        plain = language.claims.plain
        found.update(plain.split() if " " in plain else plain)
        found.update(language.words.stop)
    return frozenset(found - {"not", "no", "nor", "s"})


@derived
def _number_words() -> dict[str, int]:
    return {word: value for language in languages() for word, value in language.claims.numbers.items()}


@derived
def _scales() -> dict[str, int]:
    return {word: value for language in languages() for word, value in language.claims.scales.items()}


@derived
def _month(word: str) -> int:
    return month_number(word) if len(word) > 2 else 0
