"""The numbers that the values of a field begin with, in one unit: 1.5 kg and 900 g, 104 minutes and two hours. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from orchestrator.planning.lists.field_values import FieldGroup, KnownFields
from orchestrator.planning.lists.words import compiled, listed, word_start
from shared.grounding.numerals import unit_behind
from shared.language import languages
from shared.language.text import is_han, plain, value_key

#: A number as a pattern, with the word that multiplies it, in two groups of the name `{0}`.
NUMBER = r"[€$£¥]?\s?(?P<{0}>\d[\d,]*(?:\.\d+)?)\s?(?P<{0}_times>(?:<compare_times!>)(?![a-z]))?"
_VALUE = (
    r"(?P<ahead>[^\d\-]{0,5})(?P<number>-?\d[\d,]*(?:\.\d+)?)\s?(?P<number_times>(?:<compare_times!>)(?![a-z]))?"
    r"\s*(?P<unit>[^\d]{0,16})"
)
_UNIT = re.compile(r"\s*([^\W\d_]{1,12}|[%€$£¥])")
#: What the words of `compare_times` stand for, in their order.
_TIMES = (1e3, 1e4, 1e6, 1e8)
#: Of so many of its values a field is one of numbers.
_MOSTLY = 0.6
#: How the dimension of each currency begins: none is changed into another.
MONEY = "money"


class _Unit(NamedTuple):
    """What is counted, and how many of the base of its dimension one of it is."""

    dimension: str
    factor: float


class _Amount(NamedTuple):
    """The number that a value begins with, and what it counts, as it is written."""

    number: float
    unit: str


class Amounts(NamedTuple):
    """Value -> its number in the base of `dimension`, which is the unit itself where it is no known one.

    `unit` is the usual one, as the key of its name; `units` are all.
    """

    numbers: Mapping[str, float]
    unit: str
    units: frozenset[str]
    dimension: str

    def factor(self, unit: str) -> float | None:
        """What a number in this unit is to be multiplied with; "": in the usual one. None for another dimension."""
        read = _unit(value_key(unit) or self.unit)
        return read.factor if read.dimension == self.dimension else None


def amounts_of(group: FieldGroup) -> Amounts | None:
    """The numbers of a field; None where most of its values are none, or are of several dimensions."""
    found = {value: amount for value in group.held if (amount := _amount(value))}
    if not found or len(found) < _MOSTLY * len(group.held):
        return None
    units = Counter(amount.unit for amount in found.values() if amount.unit)
    usual = units.most_common(1)[0][0] if units else ""
    if len({_unit(unit).dimension for unit in units}) > 1:
        return None
    numbers = {value: amount.number * _unit(amount.unit or usual).factor for value, amount in found.items()}
    return Amounts(numbers, usual, frozenset(units), _unit(usual).dimension)


def numeric_fields(known: KnownFields) -> Iterator[tuple[FieldGroup, Amounts]]:
    """Each field of numbers once."""
    seen: set[tuple[str, ...]] = set()
    for group in known.groups.values():
        if not group.instead and group.first not in seen:
            seen.add(group.first)
            if amounts := amounts_of(group):
                yield group, amounts


def measured(text: str, end: int, known: KnownFields, sign: str = "") -> Iterator[tuple[FieldGroup, Amounts, int]]:
    """The field of numbers whose name or unit stands at `end`, and where that ends; none where several have it.

    `sign`: of the currency that stands before the number.
    """
    between = compiled(r"\s*(?:<amount_in>\s)?\s*").match(text, end)
    for start in (word_start(text, end), between.end() if between else end):
        if (name := known.names.at(text, start)) and (amounts := amounts_of(group := known.groups[name.values[0]])):
            yield group, amounts, name.end
            return
    found = [
        (group, amounts, stop)
        for group, amounts in numeric_fields(known)
        if amounts.units
        and (stop := end if sign and amounts.factor(sign) is not None else own_unit_end(text, end, amounts))
    ]
    if len(found) == 1:
        yield found[0]


def own_unit_end(text: str, end: int, amounts: Amounts) -> int | None:
    """Where a unit of these values ends that stands at `end`; None where there is none."""
    return next(
        (
            stop
            for stop, spelt in _spelt_units(text, end)
            if {spelt, value_key(spelt)} & amounts.units or (amounts.unit and amounts.factor(spelt) is not None)
        ),
        None,
    )


def unit_end(text: str, end: int, amounts: Amounts) -> int | None:
    """Where the unit behind a number ends; None where it is another one than that of the values."""
    unit = _UNIT.match(text, end)
    if unit is None or compiled("<behind_said>|<both>|<either>|<noun>|<compare_span>|<tail>").match(
        text, unit.start(1)
    ):
        return end
    money = (stop for stop, spelt in _spelt_units(text, end) if not amounts.unit and _currency(spelt))
    return own_unit_end(text, end, amounts) or next(money, None)


def number_of(found: re.Match[str], group: str) -> float:
    """The number in the groups that `NUMBER` makes of that name."""
    number = float(found[group].replace(",", ""))
    if times := found[f"{group}_times"]:
        number *= next(
            factor
            for place, factor in enumerate(_TIMES * len(listed("compare_times")))
            if re.fullmatch(listed("compare_times")[place], times)
        )
    return number


def _spelt_units(text: str, end: int) -> Iterator[tuple[int, str]]:
    """What stands at `end` and may be a unit, with its end; Han characters from the longest on."""
    if unit := _UNIT.match(text, end):
        for length in range(len(unit[1]), 0, -1) if is_han(unit[1]) else (len(unit[1]),):
            yield unit.start(1) + length, unit[1][:length]


def _amount(value: str) -> _Amount | None:
    found = compiled(_VALUE).fullmatch(plain(value).strip())
    if found is None:
        return None
    ahead, behind = found["ahead"].strip(), found["unit"].strip()
    spelt = next((each for each in (ahead, behind, *behind.split()[:1]) if _currency(each)), value_key(behind))
    return _Amount(number_of(found, "number"), spelt)


def _currency(spelt: str) -> str:
    """The dimension of a currency; "" for anything else."""
    for language in languages():
        for place, names in enumerate(language.lists.phrases.get("compare_unit", ())):
            if spelt and re.fullmatch(names, spelt):
                return f"{MONEY} {place}"
    return ""


def _unit(key: str) -> _Unit:
    if currency := _currency(key):
        return _Unit(currency, 1.0)
    known = unit_behind(f" {key}", 0) if key else None
    return _Unit(known.dimension, float(known.factor)) if known else _Unit(key, 1.0)
