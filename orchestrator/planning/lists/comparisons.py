"""Takes out of a question what it compares a field with: "budget over 5000", 金额不低于100, "due before June". Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import NamedTuple

from orchestrator.planning.lists.dates import DateSpan, spans
from orchestrator.planning.lists.field_told import field_part
from orchestrator.planning.lists.field_values import FieldGroup, KnownFields
from orchestrator.planning.lists.markers import NamedValues, is_negated
from orchestrator.planning.lists.numerals import with_digits
from orchestrator.planning.lists.words import Sentence, compiled, listed, unique
from shared.language.text import is_han, plain, value_key
from shared.models.enumeration import FieldFilter

_NUMBER = r"[€$£¥]?\s?(?P<{0}>\d[\d,]*(?:\.\d+)?)\s?(?P<{0}_times>(?:<compare_times!>)(?![a-z]))?"
_BETWEEN = (
    rf"\s*(?:<compare_is>\s*)?(?P<between><compare_between>\s*)?{_NUMBER.format('low')}(?P<low_unit>[^\W\d_]{{1,8}}?)?"
    rf"\s*<compare_and>\s*{_NUMBER.format('high')}"
)
_COMPARED = (
    r"\s*(?:<compare_is>\s*)?(?:(?P<most><compare_most>)|(?P<least><compare_least>)|(?P<more><compare_more>)"
    rf"|(?P<less><compare_less>))\s*{_NUMBER.format('number')}"
)
_UP_OR_DOWN = r"\s*(?:(?P<least><compare_up>)|(?P<most><compare_down>))"
_SUFFIXED = rf"\s*(?:<compare_is>\s*)?{_NUMBER.format('number')}(?P<unit>[^\W\d_]{{1,4}}?)?{_UP_OR_DOWN}"
_COUNTED = _NUMBER.format("number")
_UNIT = re.compile(r"\s*([^\W\d_]{1,12}|[%€$£¥])")
_VALUE = (
    r"[^\d\-]{0,4}(?P<number>-?\d[\d,]*(?:\.\d+)?)\s?(?P<number_times>(?:<compare_times!>)(?![a-z]))?"
    r"\s*(?P<unit>[^\d]{0,16})"
)
_LINK = r"\s*(?:<compare_is>)?\s*$"
_LEAD = r"(?:<field_lead>)\s*$"
_VERB_LEAD = r"(?:(?:that|which) )?(?:<compare_verb>)\s*$"
_BEHIND_UNIT = (
    r"\s*(?:$|[?!.,;)(、，。；？！]|<compare_span>|<behind_said>|<both>|<either>|<noun>|<tail>|[^\x00-\x7f]|\x1f)"
)
_WORD_BEGINS = re.compile(r"(?<![a-z0-9_])(?=[a-z0-9])|(?=[\u3400-\u9fff])")
#: What the words of `compare_times` stand for, in their order.
_TIMES = (1e3, 1e4, 1e6, 1e8)
#: Of so many of its values a field is one of numbers, or of days.
_MOSTLY = 0.6
_MOST_TAKEN, _LOOK_BACK = 4, 40


class _Amount(NamedTuple):
    """The number that a value begins with, and what it counts."""

    number: float
    unit: str


def take_comparisons(sentence: Sentence, known: KnownFields, named: NamedValues) -> None:
    """Numbers that a field is compared with. Where its values are no numbers, or in another unit, nothing is taken."""
    asked = sentence.text
    sentence.text = with_digits(asked)
    if known.truncated or not re.search(r"\d", sentence.text):
        sentence.text = asked
        return
    place = taken = 0
    while taken < _MOST_TAKEN and (begins := _WORD_BEGINS.search(sentence.text, place)):
        start = begins.start()
        name = known.names.at(sentence.text, start)
        end = _taken_at(sentence, known.groups[name.values[0]], start, name.end, named) if name else None
        end = end or _taken_by_unit(sentence, known, start, named)
        place, taken = (0, taken + 1) if end else (start + 1, taken)
    sentence.text = sentence.text if taken else asked


def take_field_days(sentence: Sentence, known: KnownFields, named: NamedValues, today: date) -> None:
    """Spans of time that a field of days is compared with: they are none of the documents' own."""
    if known.truncated:
        return
    for _ in range(_MOST_TAKEN):
        found = next(_field_days(sentence.text, known, today), None)
        if found is None:
            return
        start, end, group, fits = found
        _keep(sentence, (start, end), group, fits, named)


def _field_days(
    text: str, known: KnownFields, today: date
) -> Iterator[tuple[int, int, FieldGroup, Callable[[str], bool]]]:
    for span in spans(text, today) or ():
        head = compiled(_LINK).sub("", text[: span.start], 1)
        for start in range(max(0, len(head) - _LOOK_BACK), len(head)):
            name = known.names.at(head, start) if _WORD_BEGINS.match(head, start) else None
            if name is None or name.end != len(head):
                continue
            group = known.groups[name.values[0]]
            days = {value: day for value in group.names.known if (day := _day(value, today))}
            if len(days) >= _MOSTLY * len(group.names.known):
                yield start, span.end, group, partial(_within, days, span)
                break


def _within(days: Mapping[str, date], span: DateSpan, value: str) -> bool:
    day = days.get(value)
    return day is not None and (span.first or date.min) <= day <= (span.last or date.max)


def _day(value: str, today: date) -> date | None:
    found = spans(plain(value), today)
    return found[0].first if found and len(found) == 1 and found[0].first == found[0].last else None


def _taken_at(sentence: Sentence, group: FieldGroup, start: int, end: int, named: NamedValues) -> int | None:
    """Take the comparison behind the name that ends at `end`; None where there is none."""
    if not (amounts := _amounts(group)):
        return None
    for template in (_BETWEEN, _COMPARED, _SUFFIXED):
        found = compiled(template).match(sentence.text, end)
        fits = _fits(found, amounts) if found else None
        stop = _unit_end(sentence.text, found.end(), amounts) if found else None
        if fits and stop:
            behind = compiled(r"\s*<compare_span>").match(sentence.text, stop)
            if template is _BETWEEN and found and not (found["between"] or behind):
                continue
            _keep(sentence, (start, behind.end() if behind else stop), group, fits, named)
            return start + 1
    return None


def _taken_by_unit(sentence: Sentence, known: KnownFields, start: int, named: NamedValues) -> int | None:
    """Take a comparison that begins at `start` without a name: "fewer than 20 copies", "more than 200 GBP"."""
    text = sentence.text
    lead = compiled(_VERB_LEAD).search(text, max(0, start - _LOOK_BACK), start)
    begun = lead.start() if lead else start
    for template in (_BETWEEN, _COMPARED, _COUNTED):
        found = compiled(template).match(text, start)
        if found is None or (template is _BETWEEN and not found["between"]):
            continue
        for group, unit_end in _measured(text, found.end(), known):
            behind = compiled(_UP_OR_DOWN).match(text, unit_end) if template is _COUNTED else None
            fits = _fits(found, _amounts(group), behind)
            end = behind.end() if behind else unit_end
            if fits and compiled(_BEHIND_UNIT).match(text, end):
                _keep(sentence, (begun, end), group, fits, named)
                return begun + 1
    return None


def _measured(text: str, end: int, known: KnownFields) -> Iterator[tuple[FieldGroup, int]]:
    """The field of numbers whose name or unit stands at `end`; none where several have the unit."""
    start = end + len(text[end:]) - len(text[end:].lstrip())
    if (name := known.names.at(text, start)) and _amounts(known.groups[name.values[0]]):
        yield known.groups[name.values[0]], name.end
        return
    groups = {group.first: group for key in known.groups for group in [known.groups[key]] if not group.instead}
    found = [(group, stop) for group in groups.values() if (stop := _own_unit_end(text, end, _amounts(group)))]
    if len({group.first for group, _ in found}) == 1:
        yield found[0]


def _own_unit_end(text: str, end: int, amounts: Mapping[str, _Amount]) -> int | None:
    """Where a unit of these values ends that stands at `end`; None where there is none."""
    unit = _UNIT.match(text, end)
    units = {amount.unit for amount in amounts.values()} - {""}
    if unit is None or not units:
        return None
    for length in range(len(unit[1]), 0, -1) if is_han(unit[1]) else (len(unit[1]),):
        if value_key(unit[1][:length]) in units:
            return unit.start(1) + length
    return None


def _amounts(group: FieldGroup) -> dict[str, _Amount]:
    """The values of a field of numbers; none of any other field."""
    amounts = {value: amount for value in group.names.known if (amount := _amount(value))}
    return amounts if len(amounts) >= _MOSTLY * len(group.names.known) else {}


def _keep(
    sentence: Sentence, place: tuple[int, int], group: FieldGroup, fits: Callable[[str], bool], named: NamedValues
) -> None:
    start, end = place
    lead = compiled(_LEAD).search(sentence.text[:start])
    begun = lead.start() if lead else start
    spelt = " ".join(sentence.text[start:end].split())
    values = unique([value for value in group.names.known if fits(value)]) or (spelt,)
    wanted = FieldFilter(names=group.first, values=values, negated=is_negated(sentence, begun))
    named.fields.append(wanted)
    named.read_as.append(f"{spelt}: {field_part(wanted.model_copy(update={'names': group.spelt}))}")
    sentence.take(begun, end)


def _amount(value: str) -> _Amount | None:
    found = compiled(_VALUE).fullmatch(plain(value).strip())
    return _Amount(_number(found, "number"), value_key(found["unit"])) if found else None


def _number(found: re.Match[str], group: str) -> float:
    number = float(found[group].replace(",", ""))
    if times := found[f"{group}_times"]:
        number *= next(
            factor
            for place, factor in enumerate(_TIMES * len(listed("compare_times")))
            if re.fullmatch(listed("compare_times")[place], times)
        )
    return number


def _fits(
    found: re.Match[str], amounts: dict[str, _Amount], behind: re.Match[str] | None = None
) -> Callable[[str], bool] | None:
    """What an amount must be for the bound that was found, part of which may stand behind the unit."""
    groups = {**found.groupdict(), **(behind.groupdict() if behind else {})}
    if "low" in groups:
        low, high = _number(found, "low"), _number(found, "high")
        return lambda value: value in amounts and low <= amounts[value].number <= high
    number = _number(found, "number")
    checks: dict[str, Callable[[float], bool]] = {
        "more": lambda amount: amount > number,
        "least": lambda amount: amount >= number,
        "less": lambda amount: amount < number,
        "most": lambda amount: amount <= number,
    }
    check = next((checks[name] for name in checks if groups.get(name)), None)
    return (lambda value: value in amounts and check(amounts[value].number)) if check else None


def _unit_end(text: str, end: int, amounts: dict[str, _Amount]) -> int | None:
    """Where the unit behind a number ends; None where it is another one than that of the values."""
    unit = _UNIT.match(text, end)
    units = {amount.unit for amount in amounts.values()} - {""}
    if unit is None or compiled("<behind_said>|<both>|<either>|<noun>|<compare_span>|<tail>").match(
        text, unit.start(1)
    ):
        return end
    for length in range(len(unit[1]), 0, -1) if is_han(unit[1]) else (len(unit[1]),):
        spelt = unit[1][:length]
        if value_key(spelt) in units or compiled("<compare_unit>").fullmatch(spelt):
            return unit.start(1) + length
    return None
