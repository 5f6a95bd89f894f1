"""Whether what stands together in a claim stands together in its passage: by how near its words are. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from shared.grounding.alignment import Alignment
from shared.grounding.numerals import ordinals
from shared.grounding.texts import TokenText, month_of

#: A word counts for so many of the places nearest to it in the claim, and is looked for at so many in the passage.
_CONTEXT, _OCCURRENCES = 14, 40
#: Another number is the claim's where its surroundings are so much more like the claim's.
_MARGIN = 0.12
_FIRST_YEAR, _LAST_YEAR = 1000, 2100


def nearness(text: TokenText, unit: str, token: int) -> float:
    """How near a token of the text is to the next place of `unit`: 1 beside it, 0 where the text does not have it."""
    standing = text.at.get(unit)
    if not standing:
        return 0.0
    place = bisect_left(standing, token)
    near = [one for one in standing[max(0, place - 1) : place + 2] if one != token]
    return max((_near(abs(text.places[one] - text.places[token])) for one in near), default=0.0)


Beside = list[tuple[str, float]]


def surroundings(claim: TokenText, said: int, passage: TokenText, *, names: bool = True) -> Beside:
    """The units beside one token of the claim that the passage has too, and how near they are."""
    found = []
    for place in range(max(0, said - _CONTEXT), min(len(claim.units), said + _CONTEXT + 1)):
        unit = claim.units[place]
        if place != said and unit in passage.at and (names or not claim.tokens[place].name):
            found.append((unit, _near(abs(claim.places[place] - claim.places[said]))))
    return found


def likeness(beside: Beside, passage: TokenText, sources: Iterable[int], *, enough: float = 1e9) -> tuple[float, int]:
    """How near to one of these tokens of the passage the units stand that are beside one of the claim; and to which."""
    best = (0.0, -1)
    for source in sources:
        best = max(best, (sum(weight * nearness(passage, unit, source) for unit, weight in beside), source))
        if best[0] >= enough:
            break
    return best


@dataclass(frozen=True)
class Fact:
    """One number or name of a claim: where it stands there, where in the passage, what is beside it in the claim."""

    place: int
    own: tuple[int, ...]
    beside: Beside


def changed_places(
    facts: Sequence[Fact], others: Sequence[Sequence[int]], found: Alignment, *, factor: float
) -> tuple[Fact, int] | None:
    """The fact beside whose words the passage has another one; of `others`, those that may be it, by facts.

    Where that other one is in the claim too, both would have to change places.
    """
    for fact, theirs in zip(facts, others, strict=True):
        if fact.place in found.anchored:
            continue
        most = sum(weight for _, weight in fact.beside)
        straight, _ = likeness(fact.beside, found.passage, fact.own[:_OCCURRENCES], enough=(most - _MARGIN) / factor)
        if straight * factor + _MARGIN >= most:
            continue
        crossed, where = likeness(fact.beside, found.passage, theirs[:_OCCURRENCES])
        if crossed <= straight * factor + _MARGIN:
            continue
        if rival := next((one for one in facts if where in one.own), None):
            straight += likeness(rival.beside, found.passage, rival.own[:_OCCURRENCES])[0]
            crossed += likeness(rival.beside, found.passage, fact.own[:_OCCURRENCES])[0]
            if crossed <= straight * factor + _MARGIN:
                continue
        return fact, where
    return None


def like_numbers(text: TokenText, value: Decimal, dimension: str) -> list[int]:
    """The other numbers of a text that could stand where one of this dimension does."""
    found = []
    for place, token in enumerate(text.tokens):
        if (
            token.value is None
            or token.value == value
            or place in text.bracketed
            or text.low[token.start : token.end] in ordinals()
        ):
            continue
        if dimension_of(text, place) == dimension and is_year(token.value) == is_year(value):
            found.append(place)
    return found


def dimension_of(text: TokenText, place: int) -> str:
    """The dimension of a number's unit; "" for a bare number and for a year."""
    value, unit = text.tokens[place].value, text.counted.get(place)
    beside = (*text.tokens[max(0, place - 1) : place], *text.tokens[place + 1 : place + 2])
    if value is not None and not is_year(value) and any(token.name and month_of(token.key) for token in beside):
        return "date"
    return "" if unit is None or value is None or is_year(value) else unit.dimension


def is_year(value: Decimal) -> bool:
    """Whether a number may be a year."""
    return _FIRST_YEAR <= value <= _LAST_YEAR and value == value.to_integral_value()


def _near(distance: float) -> float:
    return 1 / distance if distance > 1 else 1.0
