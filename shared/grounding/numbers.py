"""The check of a claim's numbers, dates and years: each stands in the passage, beside the same words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

from shared.grounding.alignment import NEAR, Alignment
from shared.grounding.nearness import Fact, changed_places, dimension_of, is_year, like_numbers, surroundings
from shared.grounding.numerals import Measure, unit_of, wholes
from shared.grounding.segments import belongs, date_marks, is_article, is_naming, is_part_of, stands_whole
from shared.grounding.texts import Token, TokenKind, TokenText, month_of
from shared.language import claim_pattern, derived

#: So much further a number may be from the one that the claim rounds.
_ROUND, _BOUND = Decimal("0.05"), Decimal("0.15")
#: So much may be lost where a number is told in another unit.
_CONVERTED = Decimal("0.006")
_DAYS, _MONTHS, _YEARS = range(1, 32), range(1, 13), range(1000, 2101)
_BEFORE = 24
#: The dimension of how long something takes; minutes of half an hour.
_TIME, _HALF = "time", 30
#: Tokens of a place where one number has replaced another.
_FEW = 2
#: What a number may be of a change, by the words of claims.toml that stand before it.
_ROLES = {"by": "how much it changes", "to": "what it changes to", "started": "what it changes from"}
_SLASHED, _TWO = re.compile(r"\d[-/.]\d"), 2
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
        written = found.claim.word(place)
        if value is None and token.kind is TokenKind.NUMBER and token.key not in found.passage.known:
            return f"{written} is not in the passage"
        if value is None or is_article(found.claim, place):
            continue
        standing = _standing(found, place, value)
        if not standing:
            if value in found.passage.values and place not in found.claim.counted and _is_month(found.claim, place):
                continue
            if value in found.passage.values and place in found.claim.counted:
                return f"{written} counts another thing in the passage"
            if not _rounds(found, place, value) and not _lasts(found, place, value):
                return f"{written} is not in the passage"
            continue
    return _replaced(found) or _turned(found) or _other_date(found)


def _is_month(text: TokenText, place: int) -> bool:
    """Whether a number may be what a name of a month is in the passage: 2021-07, 7/2021, 7月; not that of db-7."""
    token = text.tokens[place]
    if text.low[token.end : token.end + 1] in date_marks():
        return True
    return bool(_SLASHED.search(text.low[max(0, token.start - _TWO) : token.end + _TWO]))


def _standing(found: Alignment, place: int, value: Decimal) -> list[int]:
    """The places of a number in the passage, in the same unit or another one of its dimension."""
    passage, unit = found.passage, found.claim.counted.get(place)
    places = {*passage.valued.get(value, ()), *(passage.counted if unit else ())}
    standing = sorted(
        number for number in places if _equals(value, unit, passage.tokens[number].value, passage.counted.get(number))
    )
    if unit and standing and not any(number in passage.counted for number in standing):
        return [] if any(number in passage.counted for number in passage.valued.get(value, ())) else standing
    return standing


def has_number(claim: TokenText, place: int, text: TokenText) -> bool:
    """Whether a text has one of the claim's numbers, in its unit or another one of its dimension."""
    value, unit = claim.tokens[place].value, claim.counted.get(place)
    numbers = ((token.value, text.counted.get(n)) for n, token in enumerate(text.tokens))
    return value is not None and any(_equals(value, unit, other, there) for other, there in numbers)


def _equals(value: Decimal, unit: Measure | None, other: Decimal | None, there: Measure | None) -> bool:
    if other is None or unit is None or there is None or unit == there:
        return other == value
    ours, theirs = value * unit.factor, other * there.factor
    same = abs(ours - theirs) <= (ours * _CONVERTED if unit.factor != there.factor else 0)
    return there.dimension == unit.dimension and same


def _rounds(found: Alignment, place: int, value: Decimal) -> bool:
    """Whether the claim says "more than 13,000" or "about 13,000" of a number that is."""
    token, unit = found.claim.tokens[place], found.claim.counted.get(place)
    before, written = found.claim.low[max(0, token.start - _BEFORE) : token.start], found.claim.text[token.start]
    values, behind = list(_finer(found.passage, value, unit)), found.claim.low[token.end : token.end + _BEFORE]
    if _ahead("over").search(before) or _behind("or_more").match(behind):
        bound = _BOUND if written.isascii() and written.isdigit() else 1
        return any(value < other <= value * (1 + bound) for other in values)
    if _ahead("under").search(before) or _behind("or_less").match(behind):
        return any(value * (1 - _BOUND) <= other < value for other in values)
    return bool(_ahead("around").search(before)) and any(abs(other - value) <= value * _ROUND for other in values)


def _lasts(found: Alignment, place: int, value: Decimal) -> bool:
    """Whether a number is how long it is from one time of day to the next one of a sentence: 10:03, 10:20."""
    unit = found.claim.counted.get(place)
    if unit is None or unit.dimension != _TIME:
        return False
    passage = found.passage
    said = {one for n, one in enumerate(found.claim.units) if one and not place <= n <= place + _FEW}
    own = {passage.sentence_numbers[n] for one in said for n in passage.at.get(one, ())}
    for tokens in (passage.sentences[number] for number in sorted(own)):
        times = [_minutes(one) for one in claim_pattern("clock").finditer(passage.low, tokens[0].start, tokens[-1].end)]
        if any(60 * (other - one) == value * unit.factor for one, other in pairwise(times)):
            return True
    return False


def _minutes(clock: re.Match[str]) -> int:
    hour, *rest = (group for group in clock.groups() if group)
    return 60 * int(hour) + sum(int(one) if one.isdigit() else _HALF for one in rest)


def _finer(passage: TokenText, value: Decimal, unit: Measure | None) -> Iterator[Decimal]:
    """The numbers of the passage that have more digits than one of the claim, in the claim's unit."""
    for place, token in enumerate(passage.tokens):
        there = passage.counted.get(place)
        if token.value is None or (unit and there and there.dimension != unit.dimension):
            continue
        if unit and there and there.factor != unit.factor:
            yield token.value * there.factor / unit.factor
        elif _digits(token.value) > _digits(value):
            yield token.value


def _digits(value: Decimal) -> int:
    return len(f"{value.normalize():f}".replace(".", "").rstrip("0"))


def moved_numbers(found: Alignment) -> str | None:
    """No other number of the passage stands beside the words that the claim has beside its own."""
    facts, others = [], []
    like = lru_cache(partial(like_numbers, found.passage))
    for place, token in enumerate(found.claim.tokens):
        value = token.value
        if value is None or is_article(found.claim, place) or is_naming(found.claim, token):
            continue
        if standing := _standing(found, place, value):
            facts.append(Fact(place, tuple(standing), surroundings(found.claim, place, found.passage)))
            others.append(like(value, dimension_of(found.claim, place)))
    if (moved := changed_places(facts, others, found, factor=_FACTOR)) is None:
        return None
    if belongs(found, moved[0].place) or _is_older(found.passage, moved[1]) or stands_whole(found, moved[0].place):
        return None
    if claim_pattern("past").search(found.claim.low) and all(_is_older(found.passage, one) for one in moved[0].own):
        return None
    if any(is_part_of(found.passage, one, moved[1]) for one in moved[0].own):
        return None
    said, other = found.claim.tokens[moved[0].place], found.passage.tokens[moved[1]]
    words = found.claim.text[said.start : said.end], found.passage.text[other.start : other.end]
    return f"{words[0]} stands where the passage has {words[1]}"


def _replaced(found: Alignment) -> str | None:
    """Between the passage's own words stands no other number than there."""
    for deviation in found.deviations if found.share >= NEAR else ():
        said, source = found.said(deviation), found.source(deviation)
        inside = deviation.said[0] > 0 and deviation.said[1] < len(found.claim.tokens)
        if units := _other_units(said, source):
            return f"“{units[0]}” stands where the passage has “{units[1]}”"
        if not inside or len(said) > _FEW or len(source) > _FEW:
            continue
        ours, theirs = ({token.value for token in tokens} - {None} for tokens in (said, source))
        other = (ours - theirs) & found.passage.values
        own = [place for place in range(*deviation.said) if found.claim.tokens[place].value in other]
        claim, places = found.claim, range(*deviation.source)
        values = ((n, value) for n in own if (value := claim.tokens[n].value) is not None)
        if any(one in places for n, value in values for one in _standing(found, n, value)):
            continue
        if theirs and other and not any(belongs(found, place) or stands_whole(found, place) for place in own):
            return f"{other.pop():f} stands where the passage has another number"
    return None


def _other_units(said: Sequence[Token], source: Sequence[Token]) -> tuple[str, str] | None:
    """The unit that stands in place of another one of its dimension, without a number: "the following weeks"."""
    if len(said) != 1 or len(source) != 1:
        return None
    ours, theirs = unit_of(said[0].key), unit_of(source[0].key)
    if ours is None or theirs is None or ours.dimension != theirs.dimension or ours.factor == theirs.factor:
        return None
    return said[0].key, source[0].key


def older_value(found: Alignment) -> str | None:
    """A claim of what is so has not the older value of two."""
    claim, passage = found.claim, found.passage
    if claim_pattern("past").search(claim.low):
        return None
    for place, token in enumerate(claim.tokens):
        standing = [] if token.value is None or is_year(token.value) else _standing(found, place, token.value)
        if standing and all(_is_older(passage, one) for one in standing):
            return f"{claim.text[token.start : token.end]} is the older value in the passage"
    return None


def other_measure(found: Alignment) -> str | None:
    """A number by which something changes, to which and from which it does is told as that."""
    claim, passage = found.claim, found.passage
    for place, token in enumerate(claim.tokens):
        ours = None if token.value is None else _change(claim, place)
        if ours is None or token.value is None:
            continue
        theirs = {_change(passage, one) for one in _standing(found, place, token.value)}
        if theirs and theirs.isdisjoint({ours, None}):
            written = claim.text[token.start : token.end]
            return f"{written} is {_ROLES[ours]} in the claim, {_ROLES[theirs.pop() or ours]} in the passage"
    return None


def _change(text: TokenText, place: int) -> str | None:
    """Whether a number is by how much something changes, to what or from what; None where none of them is said."""
    before = text.low[max(0, text.tokens[place].start - _BEFORE) : text.tokens[place].start]
    return next((name for name in _ROLES if _ahead(name).search(before)), None)


def _is_older(text: TokenText, place: int) -> bool:
    """Whether a number is what something was before, in a sentence that says what it is since."""
    tokens = text.sentences[text.sentence_numbers[place]]
    sentence = text.low[tokens[0].start : tokens[-1].end]
    before = text.low[max(tokens[0].start, text.tokens[place].start - _BEFORE) : text.tokens[place].start]
    return bool(_ahead("older").search(before)) and bool(claim_pattern("changes").search(sentence))


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
    return any(_ahead(name).search(each) for each in before for name in ("over", "under", "around"))


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
        elif token.value is not None and (year := _whole(tokens, place, _YEARS)):
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
        if not value or (between and ending not in date_marks()):
            break
        found.append(value)
    month, day, *_ = (*found, 0, 0)
    return month, day


def _whole(tokens: tuple[Token, ...], place: int, allowed: range) -> int:
    """The number at `place` if it is one of `allowed`, else 0."""
    value = tokens[place].value if 0 <= place < len(tokens) else None
    return int(value) if value is not None and value in allowed else 0


@derived
def _ahead(name: str) -> re.Pattern[str]:
    """One of the words of claims.toml of that name right before a number, with the sign or name of a currency."""
    currency = claim_pattern("currency").pattern
    return re.compile(rf"(?:{claim_pattern(name).pattern})\W*(?:(?:{currency})\W*)?$")


@derived
def _behind(name: str) -> re.Pattern[str]:
    """The same right behind a number and its unit."""
    return re.compile(rf"\W?\w?\s?(?:{claim_pattern(name).pattern})")
