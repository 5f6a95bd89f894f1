"""The check of two things that a sentence sets beside each other: which comes first, which is more. Pure.

"A before B" and "B after A" say the same, as "A is heavier than B" and "B is lighter than A"; "B before A" does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shared.grounding.alignment import Alignment
from shared.grounding.nearness import is_year
from shared.grounding.opposites import opposite
from shared.grounding.subjects import other_voice
from shared.grounding.texts import TokenText
from shared.language import claim_pattern, derived, derived_last, languages

#: Tokens between a word of degree and what it is compared with: "more often than".
_DEGREE = 4
#: From this share on a claim stands in the passage as it is, and with it the order of what it tells.
_VERBATIM = 0.85


#: Of so many texts the relations are kept: one claim's, and those of the passages of an answer.
_LAST = 32


class _Relation(NamedTuple):
    """What stands on the two sides of a word such as "before" or "than", as units.

    `turned`: it says of `subject` the opposite of what the others of its kind do: "after", "less than".
    `degree`: the words that may say by what two things are compared. `pronoun`: the subject has one.
    """

    kind: str
    turned: bool
    subject: frozenset[str]
    object: frozenset[str]
    degree: tuple[str, ...] = ()
    pronoun: bool = False


def changed_sides(found: Alignment) -> str | None:
    """What the claim sets beside each other does not stand on the other side in the passage."""
    return next((f"“{word}” has its two sides changed" for word, same in _compared(found) if not same), None)


@derived_last(_LAST)
def same_sides(found: Alignment) -> bool:
    """Whether claim and passage say the same of two things, by opposite words."""
    compared = [same for _, same in _compared(found)]
    return bool(compared) and all(compared)


def dated_order(found: Alignment) -> str | None:
    """Of two events that the claim sets beside each other, the passage does not date the first one later."""
    for one in _relations_of(found.claim) if found.share < _VERBATIM else ():
        both = one.subject & one.object
        years = [_year_of(found.passage, units - both) for units in (one.subject, one.object)]
        if one.kind != _TIME or years[0] is None or years[1] is None:
            continue
        if (years[0] < years[1]) if one.turned else (years[0] > years[1]):
            return f"the passage dates the one {years[0]}, the other {years[1]}"
    return None


def _year_of(text: TokenText, units: frozenset[str]) -> int | None:
    """The year of the clause that has most of some units: its only one, or the last one before it in its sentence."""
    shared = [len(units.intersection(text.units[first:last])) for first, last in text.clauses]
    best = max(range(len(shared)), key=shared.__getitem__, default=0)
    if not units or not shared or 2 * shared[best] < len(units) or shared.count(shared[best]) > 1:
        return None
    numbers, (first, last) = text.sentence_numbers, text.clauses[best]
    own = _years(text, range(first, last))
    before = _years(text, (n for n in range(first) if numbers[n] == numbers[first]))
    return own[0] if len(own) == 1 else before[-1] if before and not own else None


def _years(text: TokenText, places: Iterable[int]) -> list[int]:
    values = (text.tokens[place].value for place in places if place not in text.bracketed)
    return [int(value) for value in values if value is not None and is_year(value)]


def _compared(found: Alignment) -> Iterator[tuple[str, bool]]:
    """The relations of the claim that the passage has with crossed sides, and whether it says the same so."""
    ours = _relations_of(found.claim)
    theirs = _relations_of(found.passage) if ours else ()
    voices = other_voice(found.claim.low, found.passage.low)
    for one in ours:
        for other in theirs:
            same = one.kind == other.kind and not (one.kind not in _PLAIN and voices)
            if same and _crossed(one, other):
                turned = one.turned or other.turned
                flipped = not turned and any(opposite(a, b) for a in one.degree for b in other.degree)
                yield one.kind, (one.turned != other.turned) != flipped


def _crossed(one: _Relation, other: _Relation) -> bool:
    """Whether what each has behind the word stands before it in the other one."""
    both = one.subject & one.object | one.object & other.object - one.subject
    subject, behind, theirs = one.subject - both, one.object - both, other.object - both
    if not behind or not theirs:
        return False
    if other.pronoun and behind.isdisjoint(theirs):
        return bool(subject) and 2 * len(subject & theirs) >= len(subject)
    pairs = ((behind, other.subject), (theirs, subject))
    return all(before and 2 * len(before & after) >= len(before) for before, after in pairs)


@derived_last(_LAST)
def _relations_of(text: TokenText) -> tuple[_Relation, ...]:
    return tuple(_relations(text))


def _relations(text: TokenText) -> Iterator[_Relation]:
    read: set[int] = set()
    for kind, turned, pattern in _markers():
        for word in pattern.finditer(text.low):
            if word.end() in read:
                continue
            read.add(word.end())
            yield from _around(text, kind, word.span(), turned=turned)
    for kind, turned, pattern in _markers_behind():
        for word in pattern.finditer(text.low):
            yield from _before(text, kind, word.span(), turned=turned)


def _around(text: TokenText, kind: str, span: tuple[int, int], *, turned: bool) -> Iterator[_Relation]:
    """A word whose object stands behind it in its clause; the subject stands before it, or behind that."""
    behind = [n for n, token in enumerate(text.tokens) if token.start >= span[1]]
    if not behind:
        return
    sentence, clause = text.sentence_numbers[behind[0]], text.clause_of[behind[0]]
    places = [n for n, number in enumerate(text.sentence_numbers) if number == sentence]
    ends = [n for n in behind if text.clause_of[n] == clause]
    subject = [n for n in places if text.tokens[n].end <= span[0]] or [n for n in behind if n not in ends]
    before = [n for n in places if text.tokens[n].end <= span[0]]
    degree = [text.units[n] or text.keys[n] for n in (*before[-_DEGREE:], *ends[-_DEGREE:])]
    pronoun = any(n in text.pronouns for n in before)
    words = tuple(degree) if kind == _THAN else ()
    yield _Relation(kind, turned, _units(text, subject), _units(text, ends), words, pronoun)


def _before(text: TokenText, kind: str, span: tuple[int, int], *, turned: bool) -> Iterator[_Relation]:
    """A word whose object stands before it in its clause; the rest of the sentence is its subject."""
    before = [n for n, token in enumerate(text.tokens) if token.end <= span[0]]
    if not before:
        return
    sentence, clause = text.sentence_numbers[before[-1]], text.clause_of[before[-1]]
    objects = [n for n in before if text.clause_of[n] == clause]
    subject = [n for n, number in enumerate(text.sentence_numbers) if number == sentence and n not in objects]
    yield _Relation(kind, turned, _units(text, subject), _units(text, objects))


def _units(text: TokenText, places: list[int]) -> frozenset[str]:
    return frozenset(text.units[n] for n in places if text.units[n] and not text.units[n].startswith("#"))


_THAN, _TIME, _NOT = "than", "before", "not"
#: The kinds in which the voice of a verb tells nothing.
_PLAIN = frozenset({_THAN, _TIME, _NOT})


@derived
def _markers() -> list[tuple[str, bool, re.Pattern[str]]]:
    return [
        (_TIME, False, claim_pattern("earlier")),
        (_TIME, True, claim_pattern("later")),
        (_TIME, False, claim_pattern("sequence")),
        *_converses(),
        (_NOT, False, claim_pattern("contrasted")),
        (_THAN, True, claim_pattern("less_than")),
        (_THAN, False, claim_pattern("more_than")),
    ]


def _converses() -> Iterator[tuple[str, bool, re.Pattern[str]]]:
    for language in languages():
        for number, pair in enumerate(language.claims.converse):
            for turned, pattern in enumerate(pair):
                yield f"{language.code}{number}", bool(turned), re.compile(pattern)


@derived
def _markers_behind() -> list[tuple[str, bool, re.Pattern[str]]]:
    return [
        (_TIME, False, claim_pattern("earlier_behind")),
        (_TIME, True, claim_pattern("later_behind")),
    ]
