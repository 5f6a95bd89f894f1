"""Takes out of a question what it compares a field with: "budget over 5000", 金额不低于100, "due before June". Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from orchestrator.planning.lists.amounts import NUMBER, Amounts, amounts_of, measured, number_of, unit_end
from orchestrator.planning.lists.dates import DateSpan, spans, unread_time
from orchestrator.planning.lists.field_told import field_part
from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, of_one_word
from orchestrator.planning.lists.markers import NamedValues, is_negated, negation_start
from orchestrator.planning.lists.numerals import with_digits
from orchestrator.planning.lists.words import Sentence, compiled, listed, unique, word_start
from shared.language import reader_sentence
from shared.language.text import is_han, plain, terms
from shared.models.enumeration import FieldFilter

_BETWEEN = (
    rf"\s*(?:<compare_is>\s*)?(?P<between><compare_between>\s*)?{NUMBER.format('low')}(?P<low_unit>[^\W\d_]{{1,8}}?)?"
    rf"\s*<compare_and>\s*{NUMBER.format('high')}"
)
_COMPARED = (
    r"\s*(?:<compare_is>\s*)?(?:(?P<most><compare_most>)|(?P<least><compare_least>)|(?P<more><compare_more>)"
    rf"|(?P<less><compare_less>))\s*{NUMBER.format('number')}"
)
_UP_OR_DOWN = r"\s*(?:(?P<least><compare_up>)|(?P<most><compare_down>))"
_SUFFIXED = rf"\s*(?:<compare_is>\s*)?{NUMBER.format('number')}(?P<unit>[^\W\d_]{{1,4}}?)?{_UP_OR_DOWN}"
#: "5 or more seats".
_BOUND_INSIDE = rf"{NUMBER.format('number')}{_UP_OR_DOWN}\s"
_SIGN = re.compile("[€$£¥]")
_COUNTED = NUMBER.format("number")
#: The last word before a span of time.
_VERB_BEFORE = re.compile(r"(?<![a-z0-9\-])([a-z]+)\s*$")
_VERB_OF_FIELD = re.compile(r"(?<![a-z0-9\-])([a-z]{4,})\s+(?:at\s+)?$")
#: A word that may be the verb of a field.
_LONG_WORD = re.compile(r"(?<![a-z0-9\-])[a-z]{4,}(?![a-z0-9\-])")
_LINK = r"\s*(?:<compare_is>)?\s*$"
_LEAD = r"(?:<field_lead>)\s*$"
_VERB_LEAD = r"(?:(?:that|which) )?(?:<compare_verb>)\s*$"
_BEHIND_UNIT = (
    r"\s*(?:$|[?!.,;)(、，。；？！]|<compare_span>|<behind_said>|<both>|<either>|<noun>|<tail>|[^\x00-\x7f]|\x1f)"
)
_WORD_BEGINS = re.compile(r"(?<![a-z0-9_])(?=[a-z0-9])|(?=[\u3400-\u9fff])")
#: Of so many of its values a field is one of days.
_MOSTLY = 0.6
_MOST_TAKEN, _LOOK_BACK = 4, 40


@dataclass(frozen=True, slots=True)
class _Within:
    """Whether the day of a value lies in a span of time."""

    days: Mapping[str, date]
    span: DateSpan

    def __call__(self, value: str) -> bool:
        day = self.days.get(value)
        return day is not None and (self.span.first or date.min) <= day <= (self.span.last or date.max)

    @property
    def told(self) -> str:
        """The span as people read it."""
        first, last = self.span.first, self.span.last
        if first and last:
            return f"{first} to {last}"
        return f"{first} or later" if first else f"{last} or earlier"


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


def take_field_days(
    sentence: Sentence, known: KnownFields, named: NamedValues, today: date, *, undated: bool = False
) -> None:
    """Spans of time that a field of days is compared with: they are none of the documents' own.

    `undated`: documents have no own ones; what stands beside no name or verb is of the only field of days, or is left
    and told where there are several, or none.
    """
    if known.truncated:
        return
    for _ in range(_MOST_TAKEN):
        readers = (_field_days, _days_over)
        found = next((found for read in readers for found in read(sentence.text, known, today)), None)
        if found is None:
            break
        start, end, group, fits = found
        denied = compiled("<state_denied>").search(sentence.text, start, end) is not None  # 3月没有签署的
        _keep(sentence, (start, end), group, fits, named, denied=denied)
    for _ in range(_MOST_TAKEN):
        apart = next(_days_apart(sentence.text, known, today), None)
        if apart is None:
            break
        span, verb, group, fits = apart
        denied = is_negated(sentence, verb[0])
        places = sorted((span, (negation_start(sentence, verb[0]), verb[1])), reverse=True)
        for place in places:  # the one behind first: the other's place stays
            if place == span:
                _keep(sentence, span, group, fits, named, denied=denied)
            else:
                sentence.take(*place)
    if undated:
        _take_alone(sentence, known, named, today)


def _take_alone(sentence: Sentence, known: KnownFields, named: NamedValues, today: date) -> None:
    """Spans of time beside no name or verb of a field, where documents have no date of their own."""
    dated = fields_of_days(known, today)
    for _ in range(_MOST_TAKEN):
        span = next(iter(spans(sentence.text, today) or ()), None)
        if span is None:
            return
        if len(dated) == 1:
            _keep(sentence, (span.start, span.end), dated[0][0], _Within(dated[0][1], span), named)
            continue
        said = " ".join(sentence.text[span.start : span.end].split())
        named.left.append(said)
        if dated:
            labels = reader_sentence("comma", named.question).join(group.spelt[0] for group, _ in dated)
            named.warnings.append(reader_sentence("list_days_open", named.question, said, labels))
        sentence.take(negation_start(sentence, span.start), span.end)


def _field_days(
    text: str, known: KnownFields, today: date
) -> Iterator[tuple[int, int, FieldGroup, Callable[[str], bool]]]:
    for span in spans(text, today, verbs=True) or ():
        head = compiled(_LINK).sub("", text[: span.start], 1)
        for start in range(max(0, len(head) - _LOOK_BACK), len(head)):
            name = known.names.at(head, start) if _WORD_BEGINS.match(head, start) else None
            if name is None or name.end != len(head):
                continue
            group = known.groups[name.values[0]]
            if days := _days_of(group, today):
                yield start, span.end, group, _Within(days, span)
                break
        for place, group, days in _day_done(text, span, known, today):
            yield *place, group, _Within(days, span)
        for place, group, days in _day_of_name(text, head, span, known, today):
            yield *place, group, _Within(days, span)


def _days_apart(
    text: str, known: KnownFields, today: date
) -> Iterator[tuple[tuple[int, int], tuple[int, int], FieldGroup, Callable[[str], bool]]]:
    """A span of time, and apart from it the verb of the only field of days that has one: 2026年有多少部首演."""
    found = spans(text, today, verbs=True) or ()
    if len(found) != 1 or unread_time(text, found):
        return
    span, verbs = found[0], dict[tuple[str, ...], tuple[int, int]]()
    for key, stem in known.dated:
        words = compiled(rf"{re.escape(stem)}(?=<tail>|[?.! ]*$)") if is_han(stem) else _LONG_WORD
        for word in words.finditer(text):
            said = is_han(stem) or " ".join(terms(word[0])) == stem
            inside = said and known.anywhere.at(text, word.start()) is not None and not is_han(stem)
            apart = word.end() <= span.start or word.start() >= span.end
            if said and apart and not inside:
                verbs[known.groups[key].first] = word.span()
    dated = [(known.groups[keys[0]], place) for keys, place in verbs.items()]
    fits = [(group, place, days) for group, place in dated if (days := _days_of(group, today))]
    if len(fits) == 1:
        yield (span.start, span.end), fits[0][1], fits[0][0], _Within(fits[0][2], span)


def _days_over(
    text: str, known: KnownFields, today: date
) -> Iterator[tuple[int, int, FieldGroup, Callable[[str], bool]]]:
    """What is over, without a span of time beside it: "expired", "overdue for inspection", 已到期."""
    for name, verb in zip(listed("over_name"), listed("over_verb"), strict=True):
        found = re.search(verb, text)
        if found is None or known.anywhere.at(text, found.start("verb")):
            continue
        what = found.groupdict().get("what") or ""
        named = {group.first: group for key, group in known.groups.items() if re.fullmatch(name, key)}
        fits = [group for group in named.values() if what in group.spelt[0]]
        dated = [(group, days) for group in fits if (days := _days_of(group, today))]
        if len(dated) == 1:
            before = DateSpan(None, today - timedelta(days=1), *found.span())
            yield *found.span(), dated[0][0], _Within(dated[0][1], before)


def _day_done(
    text: str, span: DateSpan, known: KnownFields, today: date
) -> Iterator[tuple[tuple[int, int], FieldGroup, dict[str, date]]]:
    """The only field of days that is called by what is done beside a span of time: "bought in 2023" of "purchased"."""
    head = compiled(_LINK).sub("", text[: span.start], 1)
    for name, verb in zip(listed("day_name"), listed("day_verb"), strict=True):
        before = None if is_han(verb) else re.search(rf"(?<![a-z0-9\-])(?:{verb})$", head)
        place = (before.start(), span.end) if before else _done_han(verb, text, span) if is_han(verb) else None
        fits = {known.groups[key].first: known.groups[key] for key in known.groups if re.fullmatch(name, key)}
        found = [(group, days) for group in fits.values() if place and (days := _days_of(group, today))]
        if place and len(found) == 1:
            yield place, *found[0]


def _day_of_name(
    text: str, head: str, span: DateSpan, known: KnownFields, today: date
) -> Iterator[tuple[tuple[int, int], FieldGroup, dict[str, date]]]:
    """A field of days whose name has the verb beside a span of time: "departed in May" of "departure", 3月签署的."""
    before = _VERB_BEFORE.search(head)
    if before and not compiled("<head_before>|<did>").fullmatch(before[1]):
        named = [each for each in known.own if any(of_one_word(before[1], key) for key in each.first)]
        done = [(each, days) for each in named if (days := _days_of(each, today))]
        if len(done) == 1:
            yield (before.start(), span.end), *done[0]
    for key, stem in known.dated:
        one = rf"|{stem[:1]}(?=<tie_done>|<value_end!>)"  # 采的 of 采摘日期
        place = _done_han(f"{re.escape(stem)}{one}", text, span) if is_han(stem) else None
        if before and " ".join(terms(before[1])) == stem:
            place = (before.start(), span.end)
        if place and (days := _days_of(known.groups[key], today)):
            yield place, known.groups[key], days


def _done_han(verb: str, text: str, span: DateSpan) -> tuple[int, int] | None:
    """Where a verb in Han characters and the span of time beside it begin and end: 3月到5月间签署, 签署于3月."""
    if behind := compiled(rf"\s*(?:<day_behind>){{0,3}}(?:<state_denied>)?(?:{verb})").match(text, span.end):
        return span.start, behind.end()
    at = compiled("(?:<day_at>)$").search(text[: span.start]) or compiled("<day_at>").match(text, span.start)
    before = compiled(rf"(?:{verb})$").search(text[: min(at.start(), span.start)]) if at else None
    return (before.start(), span.end) if before else None


def fields_of_days(known: KnownFields, today: date) -> list[tuple[FieldGroup, dict[str, date]]]:
    """The fields that documents have and that hold days: each with value -> day."""
    return [(group, days) for group in known.own if (days := _days_of(group, today))]


def _days_of(group: FieldGroup, today: date) -> dict[str, date]:
    """Value -> day of a field of days; empty for any other field."""
    days = {value: day for value in group.held if (day := _day(value, today))}
    return days if len(days) >= _MOSTLY * len(group.held) else {}


def _day(value: str, today: date) -> date | None:
    found = spans(plain(value), today)
    return found[0].first if found and len(found) == 1 and found[0].first == found[0].last else None


def _taken_at(sentence: Sentence, group: FieldGroup, start: int, end: int, named: NamedValues) -> int | None:
    """Take the comparison behind the name that ends at `end`; None where there is none."""
    if not (amounts := amounts_of(group)):
        return None
    for template in (_BETWEEN, _COMPARED, _SUFFIXED):
        found = compiled(template).match(sentence.text, end)
        stop = unit_end(sentence.text, found.end(), amounts) if found else None
        if found is None or stop is None:
            continue
        unit = found.groupdict().get("unit") or sentence.text[found.end() : stop]
        if fits := _fits(found, amounts, unit):
            behind = compiled(r"\s*<compare_span>").match(sentence.text, stop)
            if template is _BETWEEN and not (found["between"] or behind):
                continue
            _keep(sentence, (start, behind.end() if behind else stop), group, fits, named)
            return start + 1
    return None


def _taken_by_unit(sentence: Sentence, known: KnownFields, start: int, named: NamedValues) -> int | None:
    """Take a comparison that begins at `start` without a name: "fewer than 20 copies", "more than 200 GBP"."""
    text = sentence.text
    lead = compiled(_VERB_LEAD).search(text, max(0, start - _LOOK_BACK), start)
    begun = lead.start() if lead else start
    for template in (_BETWEEN, _COMPARED, _BOUND_INSIDE, _COUNTED):
        found = compiled(template).match(text, start)
        if found is None or (template is _BETWEEN and not found["between"]):
            continue
        sign = _SIGN.search(found[0])
        for group, amounts, stop in measured(text, found.end(), known, sign[0] if sign else ""):
            behind = compiled(_UP_OR_DOWN).match(text, stop) if template is _COUNTED else None
            fits = _fits(found, amounts, text[found.end() : stop], behind)
            end = own_name_end(text, behind.end() if behind else stop, group, known)
            if fits and compiled(_BEHIND_UNIT).match(text, end):
                _keep(sentence, (begun, end), group, fits, named)
                return begun + 1
    return None


def own_name_end(text: str, end: int, group: FieldGroup, known: KnownFields) -> int:
    """Where the name of that field, or the end of it, ends if it stands at `end` once more: "100 patients enrolled"."""
    start = word_start(text, end)
    for key in group.first:
        tail = " ".join(key.split()[1:])
        if tail.count(" ") and text.startswith(tail, start):  # "10 EUR per jar" of a price per jar
            return start + len(tail)
    name = known.names.at(text, start)
    return name.end if name and known.groups[name.values[0]].first == group.first else end


def _keep(  # noqa: PLR0913 - where it stands, what it says, and where it goes
    sentence: Sentence,
    place: tuple[int, int],
    group: FieldGroup,
    fits: Callable[[str], bool],
    named: NamedValues,
    *,
    denied: bool = False,
) -> None:
    start, end = place
    lead = compiled(_LEAD).search(sentence.text[:start])
    begun = lead.start() if lead else start
    verb = _VERB_OF_FIELD.search(sentence.text[:begun])  # "estimated at over 40 hours"
    if verb and any(of_one_word(verb[1], name) for name in group.first):
        begun = verb.start()
    spelt = " ".join(sentence.text[start:end].split())
    values = unique([value for value in group.names.known if fits(value)]) or (spelt,)
    told = fits.told if isinstance(fits, _Within) else ""
    negated = denied or is_negated(sentence, begun)
    wanted = FieldFilter(names=group.first, values=values, negated=negated, told=told)
    named.fields.append(wanted)
    named.read_as.append(f"{spelt}: {field_part(wanted.model_copy(update={'names': group.spelt}))}")
    sentence.take(negation_start(sentence, begun), end)
    named.taken[sentence.takes] = wanted


def _fits(
    found: re.Match[str], amounts: Amounts, unit: str, behind: re.Match[str] | None = None
) -> Callable[[str], bool] | None:
    """What a value must be for the bound in this unit, part of which may stand behind the unit."""
    groups = {**found.groupdict(), **(behind.groupdict() if behind else {})}
    numbers, factor = amounts.numbers, amounts.factor(unit.strip()) or 1.0
    if "low" in groups:
        lower = amounts.factor(groups["low_unit"]) if groups["low_unit"] else None
        low, high = number_of(found, "low") * (lower or factor), number_of(found, "high") * factor
        return lambda value: value in numbers and low <= numbers[value] <= high
    number = number_of(found, "number") * factor
    checks: dict[str, Callable[[float], bool]] = {
        "more": lambda amount: amount > number,
        "least": lambda amount: amount >= number,
        "less": lambda amount: amount < number,
        "most": lambda amount: amount <= number,
    }
    check = next((checks[name] for name in checks if groups.get(name)), None)
    return (lambda value: value in numbers and check(numbers[value])) if check else None
