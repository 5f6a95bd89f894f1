"""Takes out of a question the sum or the average of a field: "total weight of the parts", 平均经费. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from orchestrator.planning.lists.amounts import MONEY, Amounts
from orchestrator.planning.lists.field_values import FieldGroup, KnownFields
from orchestrator.planning.lists.markers import NamedValues
from orchestrator.planning.lists.superlatives import MEASURED, field_before, field_behind, measured_by
from orchestrator.planning.lists.words import Sentence, compiled
from shared.language.text import value_key
from shared.models.enumeration import AmountOrder

_WAYS: tuple[Literal["sum", "mean"], ...] = ("sum", "mean")
#: What else of the words around the field asks for its number.
_TAIL = r"(?:\s*<total_tail>)?"
_CURRENCY_CODE = re.compile("[a-z]{3}")
_LEAD = r"(?:(?:<total_lead>|<article_words>)\s*)*$"


class _Total(NamedTuple):
    """The parts of the sentence that say it, from the left, and whose numbers are meant in which way."""

    places: tuple[tuple[int, int], ...]
    group: FieldGroup
    amounts: Amounts
    way: Literal["sum", "mean"]


def take_total(sentence: Sentence, known: KnownFields, named: NamedValues) -> None:
    """What the numbers of a field are together. What has no such field, or one of several units, is left."""
    readers = () if known.truncated else (_by_name, _by_verb)
    found = next((found for read in readers for found in read(sentence.text, known)), None)
    if found is None:
        return
    said = " ".join(sentence.text[start:end].strip() for start, end in found.places)
    for start, end in reversed(found.places):
        sentence.take(start, end)
    usual = found.amounts.factor("") or 1.0
    numbers = {value_key(value): number / usual for value, number in found.amounts.numbers.items()}
    label = found.group.spelt[0]
    unit = found.amounts.unit
    if _CURRENCY_CODE.fullmatch(unit) and found.amounts.dimension.startswith(MONEY):
        unit = unit.upper()
    named.by = AmountOrder(names=found.group.first, label=label, numbers=numbers, unit=unit)
    named.total = found.way
    named.read_as.append(f"{said}: {label}")


def _by_name(text: str, known: KnownFields) -> Iterator[_Total]:
    """Phrases such as "the total net weight of", "average fee", 总经费是多少, 金额合计."""
    for way in _WAYS:
        for found in compiled(rf"<total_{way}>\s*").finditer(text):
            if behind := field_behind(text, found.end(), known):
                yield _Total((_around(text, found.start(), behind[2]),), *behind[:2], way)
        for found in compiled(r"<total_counted>\s+").finditer(text):
            behind = field_behind(text, found.end(), known)
            end = compiled(f"<total_{way}_end>").search(text, behind[2]) if behind else None
            if behind and end:  # "how many seats do the courses have in total"
                yield _Total(((found.start(), behind[2]), end.span()), *behind[:2], way)
        for found in compiled(rf"\s*<total_{way}_behind>").finditer(text):
            if before := field_before(text, found.start(), known):
                yield _Total((_around(text, before[2], found.end()),), *before[:2], way)


def _by_verb(text: str, known: KnownFields) -> Iterator[_Total]:
    """Phrases such as "how much did the jobs cost in total", 一共花了多少钱."""
    asked = compiled("<total_asked>").search(text)
    for measured in MEASURED:
        if (field := measured_by(measured, known)) is None:
            continue
        group, amounts = field
        for way in _WAYS:
            for found in compiled(f"<total_{way}_{measured}>").finditer(text):
                yield _Total((found.span(),), group, amounts, way)
            verb = compiled(f"<verb_{measured}>").search(text, asked.end()) if asked else None
            end = compiled(f"<total_{way}_end>").search(text, verb.end()) if verb else None
            if asked and verb and end:
                yield _Total((asked.span(), verb.span(), end.span()), group, amounts, way)


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """The same with what asks for the number around it."""
    lead, tail = compiled(_LEAD).search(text[:start]), compiled(_TAIL).match(text, end)
    return lead.start() if lead else start, tail.end() if tail else end
