"""The check of a claim's numbers, dates and years: each stands in the passage, beside the same words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from shared.grounding.alignment import NEAR, Alignment
from shared.grounding.nearness import Fact, changed_places, dimension_of, like_numbers, surroundings
from shared.grounding.numerals import Measure, wholes
from shared.grounding.texts import Token, TokenKind, TokenText, month_of
from shared.language import alternatives, derived, languages

#: So much further a number may be from the one that the claim rounds.
_ROUND, _BOUND = Decimal("0.03"), Decimal("0.15")
_DAYS, _MONTHS, _YEARS = range(1, 32), range(1, 13), range(1000, 2101)
_BEFORE = 24
#: Tokens of a place where one number has replaced another.
_FEW = 2
_NAMING = 3
#: So much more like the claim's the surroundings of another number have to be.
_FACTOR = 1.35


class Date(NamedTuple):
    """A date as far as it is said; 0 for what is not."""

    year: int
    month: int
    day: int


def numbers(found: Alignment) -> str | None:
    """Each number of the claim stands in the passage, with its unit and its date."""
    for place, token in enumerate(found.claim.tokens):
        value = token.value
        written = found.claim.text[token.start : token.end]
        if value is None and token.kind is TokenKind.NUMBER and token.key not in found.passage.known:
            return f"{written} is not in the passage"
        if value is None or _is_article(found.claim, place):
            continue
        standing = _standing(found, place, value)
        if not standing:
            if value in found.passage.values and place not in found.claim.counted:
                continue
            if value in found.passage.values:
                return f"{written} counts another thing in the passage"
            if not _rounds(found, token, value):
                return f"{written} is not in the passage"
            continue
    return _replaced(found) or _turned(found) or _other_date(found)


def _standing(found: Alignment, place: int, value: Decimal) -> list[int]:
    """The places of a number in the passage, in the same unit or another one of its dimension."""
    passage, unit = found.passage, found.claim.counted.get(place)
    return [
        number
        for number, other in enumerate(passage.tokens)
        if other.kind is TokenKind.NUMBER and _equals(value, unit, other.value, passage.counted.get(number))
    ]


def _equals(value: Decimal, unit: Measure | None, other: Decimal | None, there: Measure | None) -> bool:
    if other is None or unit is None or there is None or unit == there:
        return other == value
    return there.dimension == unit.dimension and other * there.factor == value * unit.factor


def _rounds(found: Alignment, token: Token, value: Decimal) -> bool:
    """Whether the claim says "more than 13,000" or "about 13,000" of a number that is."""
    before = found.claim.low[max(0, token.start - _BEFORE) : token.start]
    values = [other for other in found.passage.values if _digits(other) > _digits(value)]
    if _over().search(before):
        return any(value < other <= value * (1 + _BOUND) for other in values)
    if _under().search(before):
        return any(value * (1 - _BOUND) <= other < value for other in values)
    return bool(_about().search(before)) and any(abs(other - value) <= value * _ROUND for other in values)


def _digits(value: Decimal) -> int:
    return len(f"{value.normalize():f}".replace(".", "").rstrip("0"))


def moved_numbers(found: Alignment) -> str | None:
    """No other number of the passage stands beside the words that the claim has beside its own."""
    facts, others = [], []
    for place, token in enumerate(found.claim.tokens):
        value = token.value
        if value is None or _is_article(found.claim, place) or _names(found.claim, token):
            continue
        if standing := _standing(found, place, value):
            facts.append(Fact(place, tuple(standing), surroundings(found.claim, place, found.passage)))
            others.append(like_numbers(found.passage, value, dimension_of(found.claim, place)))
    if (moved := changed_places(facts, others, found, factor=_FACTOR)) is None:
        return None
    said, other = found.claim.tokens[moved[0].place], found.passage.tokens[moved[1]]
    words = found.claim.text[said.start : said.end], found.passage.text[other.start : other.end]
    return f"{words[0]} stands where the passage has {words[1]}"


def _is_article(text: TokenText, place: int) -> bool:
    """Whether a "one" counts nothing that could be measured."""
    token = text.tokens[place]
    return token.value == 1 and not text.text[token.start].isdigit() and place not in text.counted


def _names(text: TokenText, token: Token) -> bool:
    """Whether a number is part of a name: 周六."""
    return bool(_naming().search(text.low[max(0, token.start - _NAMING) : token.start]))


def _replaced(found: Alignment) -> str | None:
    """Between the passage's own words stands no other number than there."""
    for deviation in found.deviations if found.share >= NEAR else ():
        said, source = found.said(deviation), found.source(deviation)
        inside = deviation.said[0] > 0 and deviation.said[1] < len(found.claim.tokens)
        if not inside or len(said) > _FEW or len(source) > _FEW:
            continue
        ours, theirs = ({token.value for token in tokens} - {None} for tokens in (said, source))
        if theirs and (other := (ours - theirs) & found.passage.values):
            return f"{other.pop():f} stands where the passage has another number"
    return None


def _turned(found: Alignment) -> str | None:
    """Two neighbouring numbers (from 25 to 30, 9 to 6) have not changed places."""
    ours, theirs = set(_neighbours(found.claim)), set(_neighbours(found.passage))
    for one, other in ours - theirs:
        if (other, one) in theirs:
            return f"{one:f} and {other:f} change places"
    return None


def qualified(text: TokenText) -> bool:
    """Whether a text says "more than", "under" or "about" of one of its numbers."""
    before = (text.low[max(0, one.start - _BEFORE) : one.start] for one in text.tokens if one.value is not None)
    return any(words.search(each) for each in before for words in (_over(), _under(), _about()))


def _neighbours(text: TokenText) -> Iterator[tuple[Decimal, Decimal]]:
    numbers = [place for place, token in enumerate(text.tokens) if token.value is not None]
    for one, other in pairwise(numbers):
        between = text.tokens[one + 1 : other]
        first, second = text.tokens[one], text.tokens[other]
        plain = all(token.plain for token in between) and "," not in text.low[first.end : second.start]
        if plain and len(between) == 1 and first.value is not None and second.value is not None:
            yield first.value, second.value


def _other_date(found: Alignment) -> str | None:
    """A date of the claim is one of the passage's, as far as both say it."""
    ours = list(dates_of(found.claim))
    theirs = list(dates_of(found.passage)) if ours else []
    for date in ours:
        like = [other for other in theirs if any(one == two != 0 for one, two in zip(date, other, strict=True))]
        if like and not any(agree(date, other) for other in theirs):
            return f"the passage has the date {'-'.join(str(part) for part in like[0] if part)}"
    return None


def agree(one: Date, other: Date) -> bool:
    """Whether two dates are the same as far as both are said."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a and b]
    return bool(pairs) and all(a == b for a, b in pairs)


def dates_of(text: TokenText) -> Iterator[Date]:
    """Dates of which at least two parts are said."""
    tokens = text.tokens
    for place, token in enumerate(tokens):
        if token.kind is TokenKind.WORD and (month := month_of(token.key)):
            day, year = _whole(tokens, place - 1, _DAYS), _whole(tokens, place + 1, _YEARS)
            if not year and (behind := _whole(tokens, place + 1, _DAYS)) and not day:
                day, year = behind, _whole(tokens, place + 2, _YEARS)
            if not day and not year and place > 1 and tokens[place - 1].key in wholes():
                day = _whole(tokens, place - 2, _DAYS)
        elif year := _whole(tokens, place, _YEARS):
            month, day = _iso(text, place)
        else:
            continue
        if (year > 0) + (month > 0) + (day > 0) > 1:
            yield Date(year, month, day)


def _iso(text: TokenText, place: int) -> tuple[int, int]:
    """Month and day behind a year: 2021-03-05, 2021年3月5日."""
    tokens, found = text.tokens, []
    for allowed in (_MONTHS, _DAYS):
        between = 1 if len(tokens) > place + 1 and tokens[place + 1].kind is TokenKind.CJK else 0
        mark = text.low[tokens[place].end : tokens[place + 1].start] if len(tokens) > place + 1 else ""
        if not between and mark not in {"-", "/"}:
            break
        place += between + 1
        value = _whole(tokens, place, allowed)
        ending = tokens[place + 1].key if between and len(tokens) > place + 1 else ""
        if not value or (between and ending not in _date_marks()):
            break
        found.append(value)
    month, day, *_ = (*found, 0, 0)
    return month, day


def _whole(tokens: tuple[Token, ...], place: int, allowed: range) -> int:
    """The number at `place` if it is one of `allowed`, else 0."""
    value = tokens[place].value if 0 <= place < len(tokens) else None
    return int(value) if value is not None and value in allowed else 0


@derived
def _date_marks() -> frozenset[str]:
    return frozenset(char for language in languages() for marks in language.claims.date_marks for char in marks)


@derived
def _naming() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(lambda language: [language.claims.naming])})\Z")


@derived
def _over() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(lambda language: [language.claims.over])})\W*$")


@derived
def _under() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(lambda language: [language.claims.under])})\W*$")


@derived
def _about() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(lambda language: [language.claims.around])})\W*$")
