"""The check of how often and per what: "twice a year" is said of the inspectors, "every month" of the gates. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shared.grounding.alignment import Alignment
from shared.grounding.texts import TokenText
from shared.language import claim_pattern, derived, languages

#: Characters between a number and what it is counted per.
_REACH = 20


class _Rate(NamedTuple):
    """`low[start:end]` of a text; `name`: the period, the same however it is written, or what else is counted per."""

    name: str
    start: int
    end: int


def other_rate(found: Alignment) -> str | None:
    """What the claim counts per day, per year or per head, the passage does not count per another one."""
    claim, passage = found.claim, found.passage
    ours = list(_rates(claim, 0, len(claim.low)))
    for rate in ours:
        for place in _numbers_beside(claim, rate):
            value = claim.tokens[place].value
            own = passage.valued.get(value, ()) if value is not None else ()
            beside = [list(_beside(passage, one)) for one in own]
            if beside and all(beside) and (other := _other(rate, (one for each in beside for one in each))):
                return _reason(found, rate, other)
        for number in found.evidence[:1]:
            first, last = passage.clauses[number]
            there = _rates(passage, passage.tokens[first].start, passage.tokens[last - 1].end)
            if other := _other(rate, there):
                return _reason(found, rate, other)
    return None


def _reason(found: Alignment, ours: _Rate, theirs: _Rate) -> str:
    words = found.claim.text[ours.start : ours.end], found.passage.text[theirs.start : theirs.end]
    return f"“{words[0]}” stands where the passage has “{words[1]}”"


def _other(rate: _Rate, there: Iterable[_Rate]) -> _Rate | None:
    """One of some rates, where none of them is the claim's."""
    others = list(there)
    return None if not others or any(one.name == rate.name for one in others) else others[0]


def _numbers_beside(text: TokenText, rate: _Rate) -> Iterator[int]:
    for place, token in enumerate(text.tokens):
        if token.value is not None and rate in _beside(text, place):
            yield place


def _beside(text: TokenText, place: int) -> Iterator[_Rate]:
    """The rates in the clause of a number, near to it: those with no other number between, first what stands behind."""
    token = text.tokens[place]
    first, last = text.clauses[text.clause_of[place]]
    start = max(text.tokens[first].start, token.start - _REACH)
    end = min(text.tokens[last - 1].end, token.end + _REACH)
    found = list(_rates(text, start, end))
    behind = next((one.start for one in text.tokens[place + 1 : last] if one.value is not None), end)
    own = [rate for rate in found if token.end <= rate.start < behind]
    return iter(own or found)


def _rates(text: TokenText, start: int, end: int) -> Iterator[_Rate]:
    read: set[int] = set()
    for name, words in _periods():
        for word in words.finditer(text.low, start, end):
            read.add(word.end())
            yield _Rate(name, *word.span())
    for word in claim_pattern("per").finditer(text.low, start, end):
        if word.end() not in read:
            yield _Rate(next(filter(None, word.groups()), word[0]), *word.span())


@derived
def _periods() -> list[tuple[str, re.Pattern[str]]]:
    return [(name, re.compile(words)) for language in languages() for name, words in language.claims.rates.items()]
