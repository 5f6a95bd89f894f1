"""The check of numbers that stand side by side: each with the words of its own part of the sentence. Pure.

"38 % in the one group and 11 % in the other": what stands in the part of one of the two is not said of the other one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from shared.grounding.alignment import Alignment
from shared.grounding.nearness import dimension_of, is_year
from shared.grounding.numerals import ordinals, wholes
from shared.grounding.texts import Token, TokenText
from shared.language import alternatives, claim_pattern, derived, languages

_NAMING = 3
_TWO = 2
_MONTHS, _YEAR = "months", "year"
#: Of a sentence with more numbers no parts are looked for.
_MOST = 40


class _Part(NamedTuple):
    """The tokens `start`..`end` of a sentence, of which `number` is one."""

    start: int
    number: int
    end: int


def other_part(found: Alignment) -> str | None:
    """No word that the claim has beside a number stands only in the part of another one beside it."""
    claim, passage = found.claim, found.passage
    for place, token in enumerate(claim.tokens):
        if token.value is None or place in found.anchored or not _counts(claim, place) or stands_whole(found, place):
            continue
        parts = list(dict.fromkeys(_parts(passage, token.value)))
        own = [part for part in parts if passage.tokens[part.number].value == token.value]
        if len(own) != 1:
            continue
        for other in parts:
            same = passage.sentence_numbers[other.number] == passage.sentence_numbers[own[0].number]
            if not same or other.start == own[0].start or passage.tokens[other.number].key in claim.known:
                continue
            earlier = other.start < own[0].start
            if _is_attribute(passage, other.number) or _kind(passage, other.number) not in _like(_kind(claim, place)):
                continue
            if earlier and belongs(found, place):
                continue  # words of an earlier part are left out in the ones behind it
            start = _behind(passage, other) if earlier else other.start
            if word := _word_of(claim, place, passage, other, start):
                written = claim.text[token.start : token.end]
                return f"{written} stands beside “{word}”, which the passage says of another number"
    return None


def _is_attribute(text: TokenText, place: int) -> bool:
    """Whether a number tells of what kind the word behind it is: two-lane."""
    end = text.tokens[place].end
    return text.low[end : end + 1] == "-" and text.low[end + 1 : end + 2].isalpha()


def _behind(text: TokenText, part: _Part) -> int:
    """The place behind a number and what it counts, which may be left out where the next number counts the same."""
    return next((place for place in range(part.number + 1, part.end) if text.units[place]), part.end) + 1


def belongs(found: Alignment, place: int) -> bool:
    """Whether a number of the claim has a word beside it that the passage has in that number's part alone."""
    value = found.claim.tokens[place].value
    if value is None or not _counts(found.claim, place):
        return False
    own = [part for part in set(_parts(found.passage, value)) if found.passage.tokens[part.number].value == value]
    return len(own) == 1 and bool(_word_of(found.claim, place, found.passage, own[0], _own(found.passage, own[0])))


def _own(text: TokenText, part: _Part) -> int:
    """From where on the words of a part are its own; what the sentence begins with is of all of its numbers."""
    numbers = text.sentence_numbers
    return part.number + 1 if not part.start or numbers[part.start] != numbers[part.start - 1] else part.start


def _parts(text: TokenText, value: Decimal) -> Iterator[_Part]:
    """The parts of all sentences that have a number and others of its kind."""
    start = 0
    for sentence in text.sentences:
        start, first = start + len(sentence), start
        values = [token.value for token in sentence if token.value is not None]
        if value not in values or not _TWO <= len(values) <= _MOST:
            continue
        places = [n for n in range(first, start) if _counts(text, n) and n not in text.bracketed]
        kinds = [_kind(text, place) for place in places]
        for kind in dict.fromkeys(kinds):
            like = [place for place, one in zip(places, kinds, strict=True) if one in _like(kind)]
            cuts = [cut for one, other in pairwise(like) if (cut := _cut(text, one, other)) is not None]
            edges = (first, *cuts, start)
            for place in like if cuts else ():
                part = bisect_right(edges, place)
                yield _Part(edges[part - 1], place, edges[part])


def _like(kind: str) -> frozenset[str]:
    """The kinds of numbers that may stand beside one: a bare one may have its unit further on."""
    return frozenset({kind}) if kind in {"", _YEAR} else frozenset({kind, ""})


def _kind(text: TokenText, place: int) -> str:
    return _YEAR if _is_year(text, place) else dimension_of(text, place)


def _is_year(text: TokenText, place: int) -> bool:
    value, unit = text.tokens[place].value, text.counted.get(place)
    return value is not None and is_year(value) and (unit is None or unit.dimension == _MONTHS)


def _cut(text: TokenText, one: int, other: int) -> int | None:
    """The last token between two numbers before which one part ends and the next one begins."""
    for place in range(other, one, -1):
        between = text.low[text.tokens[place - 1].end : text.tokens[place].start]
        if _separator().search(between) or claim_pattern("joints").fullmatch(text.tokens[place].key):
            return place
    return None


def _word_of(claim: TokenText, number: int, passage: TokenText, part: _Part, start: int) -> str:
    """A word of the claim, nearest to that number of it, that the sentence has only in a part of it from `start` on."""
    numbers = [place for place, token in enumerate(claim.tokens) if token.value is not None]
    sentence = passage.sentence_numbers[part.number]
    for place, unit in enumerate(claim.units):
        if not unit or claim.tokens[place].value is not None or claim.clause_of[place] != claim.clause_of[number]:
            continue
        nearest = min(numbers, key=lambda one: abs(claim.places[one] - claim.places[place]))
        standing = [one for one in passage.at.get(unit, ()) if passage.sentence_numbers[one] == sentence]
        if nearest == number and standing and all(start <= one < part.end for one in standing):
            return claim.text[claim.tokens[place].start : claim.tokens[place].end]
    return ""


def stands_whole(found: Alignment, place: int) -> bool:
    """Whether a clause of the passage has all that the claim's clause says of a number, or all of its numbers."""
    claim, passage, value = found.claim, found.passage, found.claim.tokens[place].value
    first, last = claim.clauses[claim.clause_of[place]]
    units = Counter(unit for unit in claim.units[first:last] if unit)
    values = Counter(token.value for token in claim.tokens[first:last] if token.value is not None)
    for one in {passage.clause_of[one] for one in passage.valued.get(value, ())} if value is not None else ():
        start, end = passage.clauses[one]
        numbers = Counter(token.value for token in passage.tokens[start:end] if token.value is not None)
        if (len(units) > 1 and units <= Counter(passage.units[start:end])) or (len(values) > 1 and values == numbers):
            return True
    return False


def is_part_of(text: TokenText, place: int, other: int) -> bool:
    """Whether a number is so many of another one: two of the three."""
    between = text.tokens[place + 1 : other]
    return bool(between) and between[0].key in wholes() and all(token.plain for token in between)


def is_article(text: TokenText, place: int) -> bool:
    """Whether a "one" counts nothing that could be measured."""
    token = text.tokens[place]
    return token.value == 1 and not text.text[token.start].isdigit() and place not in text.counted


def is_naming(text: TokenText, token: Token) -> bool:
    """Whether a number is part of a name: 周六."""
    return bool(_naming().search(text.low[max(0, token.start - _NAMING) : token.start]))


def _counts(text: TokenText, place: int) -> bool:
    """Whether a number is a year or says how many: no day, no ordinal, no part of a name, no "one"."""
    token = text.tokens[place]
    if token.value is None or text.low[token.start : token.end] in ordinals():
        return False
    if _is_year(text, place):
        return True
    dated = text.low[token.end : token.end + 1] in date_marks() or dimension_of(text, place) == "date"
    return not dated and not is_article(text, place) and not is_naming(text, token)


@derived
def _separator() -> re.Pattern[str]:
    return re.compile(r"[,;，；、]")


@derived
def _naming() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(lambda language: [language.claims.naming])})\Z")


@derived
def date_marks() -> frozenset[str]:
    return frozenset(char for language in languages() for marks in language.claims.date_marks for char in marks)
