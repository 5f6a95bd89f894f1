"""Whether two statements of different documents contradict each other: the same fact with another value. Pure.

Precision comes before recall: both have to speak of the same thing in the same words, and to differ in one number, one
date, a negation or one opposite. Whatever one says that the other does not makes them statements of two things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from shared.grounding.modality import quantities_in
from shared.grounding.nearness import is_year
from shared.grounding.numbers import Date, agree, dates_of, qualified
from shared.grounding.numerals import ordinals, unit_behind
from shared.grounding.opposites import opposite
from shared.grounding.roles import weighs
from shared.grounding.texts import Token, TokenKind, TokenText, month_of
from shared.grounding.tokens import tokens_of
from shared.language import alternatives, claim_pattern, derived, languages

#: So many words, or pairs of CJK characters, have two statements of one thing in common; one that is denied has more.
_LEAST, _LEAST_DENIED = 2, 3
#: A clause that names what it speaks of has so many words of weight, or so many CJK characters.
_NAMING, _NAMING_CJK = 2, 6
_YEAR_DIGITS = 4
#: Numbers that differ by less are one number, rounded.
_ROUNDED = Decimal("0.03")
_CLOCK, _BARE = "clock", ""
_DIGITS = re.compile(r"[\d\W_]+")


class ConflictKind(StrEnum):
    """In what two statements differ."""

    NUMBER = "number"
    DATE = "date"
    NEGATION = "negation"
    OPPOSED = "opposed"


class Conflict(NamedTuple):
    """What the one says and what the other says."""

    kind: ConflictKind
    one: str
    other: str


class _Value(NamedTuple):
    """A number of a statement: what it counts, how many of the base, and how it is written.

    `label`: the word before a bare number that may be its name and not its value ("version 5").
    """

    dimension: str
    amount: Decimal | str
    written: str
    label: str = ""


@dataclass(frozen=True)
class Statement:
    """A sentence and what it stands below: the title of its page and its heading."""

    text: str
    title: str = ""
    heading: str = ""

    @cached_property
    def clauses(self) -> list[_Clause]:
        """The sentence, and each of its clauses with what the sentence says of days."""
        whole = tokens_of(self.text)
        about = _content(tokens_of(f"{self.title}\n{self.heading}"))
        title = _content(tokens_of(self.title))
        depends = any(_is_condition(whole.slice(*clause)) for clause in whole.clauses)
        found = [_Clause(whole, about, title, _days(whole), depends, whole=True)]
        for first, last in whole.clauses if len(whole.clauses) > 1 else ():
            text = tokens_of(self.text[whole.tokens[first].start : whole.tokens[last - 1].end])
            if len(_content(text)) >= _LEAST:
                found.append(_Clause(text, about, title, _days(whole), depends))
        return found


@dataclass(frozen=True)
class _Clause:
    """`about`: the units of title and heading; `days`: the dates and years of the sentence.

    `depends`: the sentence says it under a condition.
    """

    said: TokenText
    about: frozenset[str]
    title: frozenset[str]
    days: frozenset[Date]
    depends: bool
    whole: bool = False

    @cached_property
    def content(self) -> frozenset[str]:
        return _content(self.said)

    @cached_property
    def known(self) -> frozenset[str]:
        """The units of the clause and of what it stands below, and the characters of those that are CJK pairs."""
        every = self.content | self.about
        return every | {char for unit in every if not unit.isascii() for char in unit}

    @cached_property
    def denies(self) -> bool:
        return any(token.denies for token in self.said.tokens)

    @cached_property
    def terms(self) -> tuple[frozenset[str], bool]:
        """The conditions and quantities that it names, and whether it is a plan or a guess."""
        low = self.said.low
        words = frozenset(word.strip() for word in claim_pattern("conditional").findall(low))
        return words | quantities_in(low), bool(_unsure().search(low))

    @cached_property
    def values(self) -> frozenset[_Value]:
        return frozenset(_values(self.said, self.days))


def conflict(one: Statement, other: Statement, asked: str = "") -> Conflict | None:
    """In what they contradict each other; None where they agree, or speak of two things.

    `asked`: a question; what both say has to be equally near to it.
    """
    if _series(one.title) == _series(other.title) and one.title != other.title:
        return None  # two of a series: notes of two days, two versions
    question = _content(tokens_of(asked))
    pairs = ((a, b) for a in one.clauses for b in other.clauses)
    return next((found for a, b in pairs if _same_thing(a, b, question) and (found := _differ(a, b, question))), None)


def _same_thing(one: _Clause, other: _Clause, question: frozenset[str]) -> bool:
    """Whether both speak of the same thing under the same conditions, as near to the question."""
    if one.terms != other.terms or one.depends != other.depends or _rivals(one, other):
        return False
    both = ((one, other), (other, one))
    if any(not any(opposite(unit, word) for word in b.content) for a, b in both for unit in _nearer(question, a, b)):
        return False
    if not _common(one.content, other) or len(_common(one.content | one.about, other)) < _LEAST:
        return False
    if not _anchored(one, other, question):
        return False
    return all(_is_of_itself(a) or all(_has(b, unit) for unit in a.title) for a, b in both)


def _differ(one: _Clause, other: _Clause, question: frozenset[str]) -> Conflict | None:
    ours, theirs = (frozenset(u for u in a.content if not _has(b, u)) for a, b in ((one, other), (other, one)))
    if len(ours) == len(theirs) == 1 and one.denies == other.denies and one.values == other.values:
        words = (next(iter(ours)), next(iter(theirs)))
        same = one.whole and other.whole and one.days == other.days
        return Conflict(ConflictKind.OPPOSED, *words) if same and opposite(*words) else None
    if ours or theirs:
        return None
    if one.denies != other.denies:
        same = one.values == other.values and one.days == other.days
        enough = len(_common(one.content, other)) >= _LEAST_DENIED
        return Conflict(ConflictKind.NEGATION, one.said.text, other.said.text) if same and enough else None
    if one.days != other.days:
        return _other_day(one, other)
    return _other_number(one, other, question)


def _other_number(one: _Clause, other: _Clause, question: frozenset[str]) -> Conflict | None:
    ours, theirs = one.values - other.values, other.values - one.values
    amounts = [{(value.dimension, value.amount) for value in values} for values in (one.values, other.values)]
    ours = frozenset(value for value in ours if (value.dimension, value.amount) not in amounts[1])
    theirs = frozenset(value for value in theirs if (value.dimension, value.amount) not in amounts[0])
    if len(ours) != 1 or len(theirs) != 1:
        return None
    a, b = next(iter(ours)), next(iter(theirs))
    if a.dimension != b.dimension or any(label and label not in question for label in (a.label, b.label)):
        return None
    if isinstance(a.amount, Decimal) and isinstance(b.amount, Decimal):
        if qualified(one.said) or qualified(other.said):
            return None
        if abs(a.amount - b.amount) <= _ROUNDED * max(abs(a.amount), abs(b.amount)):
            return None
    return Conflict(ConflictKind.NUMBER, a.written, b.written)


def _other_day(one: _Clause, other: _Clause) -> Conflict | None:
    """Two days of what happens once."""
    if len(one.days) != 1 or len(other.days) != 1 or one.values != other.values:
        return None
    a, b = next(iter(one.days)), next(iter(other.days))
    if agree(a, b) or not any(x and y for x, y in zip(a, b, strict=True)):
        return None
    if not all(claim_pattern("once").search(clause.said.low) for clause in (one, other)):
        return None
    return Conflict(ConflictKind.DATE, *("-".join(str(part) for part in day if part) for day in (a, b)))


def _rivals(one: _Clause, other: _Clause) -> bool:
    """Whether each is of a page of its own whose title the other's is like, and names none of what tells them apart."""
    ours, theirs = one.title - other.title, other.title - one.title
    apart = bool(ours and theirs and one.title & other.title)
    return apart and one.content.isdisjoint(ours) and other.content.isdisjoint(theirs)


def _anchored(one: _Clause, other: _Clause, question: frozenset[str]) -> bool:
    """Whether what both say is what one of the pages, or the question, is about; else each speaks of its own page."""
    common = _common(one.content, other) | _common(other.content, one)
    return not common.isdisjoint(one.title | other.title) or len(common & question) >= _LEAST


def _is_of_itself(clause: _Clause) -> bool:
    """Whether a clause names what it speaks of: a name, something of its title, or several words."""
    if any(token.name for token in clause.said.tokens) or not clause.title.isdisjoint(clause.content):
        return True
    behind = {place + 1 for place in clause.said.counted}
    wide = (token for place, token in enumerate(clause.said.tokens) if place not in behind and not token.key.isascii())
    characters = sum(token.end - token.start for token in wide)
    return sum(unit.isascii() for unit in clause.content) >= _NAMING or characters >= _NAMING_CJK


def _nearer(question: frozenset[str], one: _Clause, other: _Clause) -> frozenset[str]:
    """What of the question the one has and the other has not."""
    return frozenset(unit for unit in question if _has(one, unit) and not _has(other, unit))


def _common(units: frozenset[str], other: _Clause) -> frozenset[str]:
    return frozenset(unit for unit in units if _has(other, unit))


def _has(clause: _Clause, unit: str) -> bool:
    """Whether a clause, or what it stands below, has a unit; of a CJK pair, both characters."""
    if unit in clause.known:
        return True
    return not unit.isascii() and all(char in clause.known for char in unit)


def _content(text: TokenText) -> frozenset[str]:
    """What a text speaks of: its words of weight without numbers, units and days."""
    behind = {place + 1 for place in text.counted}
    behind |= {place - 1 for place, token in enumerate(text.tokens) if token.denies and token.kind is TokenKind.CJK}
    return frozenset(
        unit
        for place, (unit, token) in enumerate(zip(text.units, text.tokens, strict=True))
        if unit and weighs(token) and place not in behind and not _is_number(token, text) and not _is_month(token)
    )


def _is_number(token: Token, text: TokenText) -> bool:
    """Whether a number counts something: neither an ordinal nor the beginning of a name such as 3D."""
    if token.kind is not TokenKind.NUMBER or text.low[token.start : token.end] in ordinals():
        return False
    behind = text.low[token.end : token.end + 1]
    return not (behind.isascii() and behind.isalpha()) or unit_behind(text.low, token.end) is not None


def _is_month(token: Token) -> bool:
    return token.kind is TokenKind.WORD and bool(month_of(token.key))


def _days(text: TokenText) -> frozenset[Date]:
    """The dates, and the years that stand alone."""
    found = list(dates_of(text))
    years = {day.year for day in found}
    alone = (int(token.value) for token in text.tokens if token.value is not None and _is_lone_year(token))
    return frozenset(found) | {Date(year, 0, 0) for year in alone if year not in years}


def _is_lone_year(token: Token) -> bool:
    return token.value is not None and is_year(token.value) and token.end - token.start == _YEAR_DIGITS


def _values(text: TokenText, days: frozenset[Date]) -> Iterator[_Value]:
    parts = {Decimal(part) for day in days for part in day if part}
    for place, token in enumerate(text.tokens):
        written, unit = text.text[token.start : token.end], text.counted.get(place)
        if not _is_number(token, text) or (token.value == 1 and not written[0].isdigit()):
            continue
        if token.value is None:
            clock = ":" in token.key
            label = "" if clock else _label(text, place, always=True)
            yield _Value(_CLOCK if clock else _BARE, token.key, written, label)
        elif token.value in parts and (unit is None or is_year(token.value)):
            continue
        elif unit:
            yield _Value(unit.dimension, token.value * unit.factor, written)
        else:
            yield _Value(_sign(text, place), token.value, written, _label(text, place))


def _sign(text: TokenText, place: int) -> str:
    behind = text.tokens[place + 1 : place + 2]
    return behind[0].key if behind and behind[0].kind is TokenKind.SIGN else _BARE


def _label(text: TokenText, place: int, *, always: bool = False) -> str:
    """The word of weight right before a bare number; "?" where the number can only be a name."""
    before = text.tokens[place - 1] if place else None
    if before is None or not weighs(before) or before.end + 1 < text.tokens[place].start:
        return "?" if always else ""
    return (text.units[place - 1] or before.key) if any(text.units[: place - 1]) else "?"


def _is_condition(low: str) -> bool:
    return any(language.claims.condition.search(low) for language in languages())


def _series(title: str) -> str:
    return _DIGITS.sub(" ", title).strip().lower()


@derived
def _unsure() -> re.Pattern[str]:
    return re.compile(
        alternatives(
            lambda language: [
                language.claims.hedges, language.claims.rumours, language.claims.plans, language.claims.future
            ]
        )
    )  # fmt: skip
