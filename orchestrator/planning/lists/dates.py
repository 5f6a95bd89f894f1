"""The spans of time that a question names: "in March 2026", "since 2025", 去年. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Literal, NamedTuple

from shared.language import alternatives, derived, languages
from shared.language.base import Bend, DateWords
from shared.language.tables import with_lists
from shared.language.text import month_number

_EDGE, _END = r"(?<![\w\-/.])", r"(?![\w\-/]|\.\d)"
_YEAR = r"(?P<y>(?:19|20)\d\d)"
_DAY = re.compile(rf"{_EDGE}{_YEAR}[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}}){_END}")
_MONTH = re.compile(rf"{_EDGE}{_YEAR}[-/](?P<m>0[1-9]|1[0-2]){_END}")
#: What stands before, between and behind spans of time; `<name>` is a field of DateWords.
_LEAD = "<lead>$"
_DASH = "[-–—~]"
_JOIN = rf"\s*(?:<join>|{_DASH})\s*<join_tail>?"
_REACH = rf"\s*(?:<reach>|{_DASH})"
_EITHER = "<either>"
_BEHIND = r"\s*(?P<word><behind>)"
#: A year alone stands behind a word, or at the start.
_BARE_YEAR = rf"(?P<lead>^|(?<![a-z])(?:<year_lead>|-) ){_YEAR}{_END}"
#: So far before a span its prepositions are looked for, in characters.
_LOOK_BACK = 20
#: So many parts of a year may share it: "january, february and march 2026".
_MOST_SHARED = 12
_LAST_PART = 3
#: Days of more than a half of a year.
_MOST_SHORT = 190


class DateSpan(NamedTuple):
    """Days from `first` to `last` (inclusive, None: open) and where they stand in the text.

    `beside`: it stands beside the one before it, "in March and in June 2026".
    """

    first: date | None
    last: date | None
    start: int
    end: int
    beside: bool = False


@derived
def _dates() -> tuple[DateWords, ...]:
    return tuple(language.dates for language in languages())


@derived
def _compiled(template: str) -> re.Pattern[str]:
    return re.compile(with_lists(template, lambda name: alternatives(lambda known: getattr(known.dates, name))))


def spans(text: str, today: date) -> tuple[DateSpan, ...] | None:
    """The spans of time in a folded question, in order; None where one of them ends before it begins.

    "2024 and 2025" joins to two years, "from May 2025 to July 2025" to three months; "2023 and 2025" are two spans.
    """
    joined: list[DateSpan] = []
    for span in sorted(_all(text, today), key=lambda span: span.start):
        joined[-1:] = _joined(joined[-1], span, text) if joined else [span]
    if any(span.first and span.last and span.first > span.last for span in joined):
        return None
    return tuple(span if span.beside else _with_lead(span, text) for span in joined)


def _joined(one: DateSpan, other: DateSpan, text: str) -> list[DateSpan]:
    """Both as one where they say one span of time, else both."""
    between = text[one.end : other.start]
    if not _compiled(_JOIN).fullmatch(between):
        return [one, other]
    opened = text[: one.start].rstrip().endswith(tuple(word for dates in _dates() for word in dates.between))
    if _compiled(_REACH).match(between) or (opened and not one.beside) or _follows(one, other):
        return [one._replace(last=other.last, end=other.end)]
    if not _compiled(_EITHER).search(between):  # "since 2024 and before June 2025"
        if one.first and not one.last and not other.first:
            return [one._replace(last=other.last, end=other.end)]
        if one.last and not one.first and not other.last:
            return [one._replace(first=other.first, end=other.end)]
    return [one, other._replace(beside=True)]


def _with_lead(span: DateSpan, text: str) -> DateSpan:
    lead = _compiled(_LEAD).search(text[max(0, span.start - _LOOK_BACK) : span.start])
    return span._replace(start=span.start - len(lead[0])) if lead else span


def with_years(text: str, today: date) -> str:
    """A folded question with the year beside every part of it: "february and april 2026", 今年3月到5月."""
    for dates in _dates():
        if dates.named_year:
            text = dates.named_year.sub(lambda found, dates=dates: _with_year(found, dates, today), text)  # type: ignore[misc]
        for _ in range(_MOST_SHARED):
            before = text
            for pattern, instead in dates.shared_years:
                text = pattern.sub(instead, text)
            if text == before:
                break
    return text


def _with_year(found: re.Match[str], dates: DateWords, today: date) -> str:
    year = dates.year_form.format(today.year - dates.relative[found["rel"]][1])
    return found[0].replace(found["rel"], year)


def _all(text: str, today: date) -> Iterator[DateSpan]:
    taken: list[tuple[int, int]] = []
    forms = (_DAY, *(form for dates in _dates() for form in dates.spans), _MONTH, _compiled(_BARE_YEAR))
    for each in forms:  # the longest ways to write a span come first
        for found in each.finditer(text):
            start = found.start("y") if "lead" in each.groupindex else found.start()
            if any(start < end and found.end() > begun for begun, end in taken):
                continue
            days = _days(found.groupdict(), today)
            if days is not None:
                taken.append((start, found.end()))
                yield _bent(text, DateSpan(*days, start, found.end()))


def _bent(text: str, span: DateSpan) -> DateSpan:
    """The span under its preposition: "since" opens its end, "before" its beginning and leaves the span itself out."""
    first, last, start, end, _ = span
    word = ""
    head = text[max(0, start - _LOOK_BACK) : start]
    if ahead := next((found for dates in _dates() if dates.ahead and (found := dates.ahead.search(head))), None):
        word, start = ahead["word"], start - len(ahead[0])
    if behind := _compiled(_BEHIND).match(text, end):
        word, end = behind["word"], behind.end()
    bend: Bend | None = next((dates.bends[word] for dates in _dates() if word in dates.bends), None)
    day = timedelta(days=1)
    if bend == "from":
        return DateSpan(first, None, start, end)
    if bend == "after":
        return DateSpan(last + day if last else None, None, start, end)
    if bend == "before":
        return DateSpan(None, first - day if first else None, start, end)
    return DateSpan(None if bend == "until" else first, last, start, end)


def _days(found: dict[str, str | None], today: date) -> tuple[date, date] | None:
    days = _whole_days(found, today)
    return _part_of(days, _known("parts", part)) if days and (part := found.get("part")) else days


def _part_of(days: tuple[date, date], part: int) -> tuple[date, date] | None:
    """The first, second or last part of a month, by tens of days, or of a year, by terms of four months."""
    first, last = days
    if (first.year, first.month) == (last.year, last.month):
        start = first.replace(day=10 * part - 9)
        return start, last if part == _LAST_PART else start + timedelta(days=9)
    if first.year == last.year and (last - first).days >= _MOST_SHORT:
        return date(first.year, 4 * part - 3, 1), _month_end(first.year, 4 * part)
    return None


def _whole_days(found: dict[str, str | None], today: date) -> tuple[date, date] | None:
    if rel := found.get("rel"):
        return _relative(rel, today)
    if unit := found.get("unit"):
        days = int(found["n"] or 0) * _known("units", unit)
        return today - timedelta(days=min(days, 36_500)), today
    year = int(found.get("y") or found.get("yy") or 0)
    name, number = found.get("n"), found.get("m")
    month = month_number(name) if name else int(number or 0)
    if week := found.get("w"):
        return _week_of_year(year, int(week))
    if week := found.get("wm"):
        return _week_of_month(year, month, 0 if week == "last" else _known("quarters", week) or int(week))
    return _months(found, year) or _of_calendar(year, month, found.get("d"))


def _months(found: dict[str, str | None], year: int) -> tuple[date, date] | None:
    """A quarter, a half or a season of a year; None where none is named."""
    first, count = 0, 3
    if quarter := found.get("q") or found.get("qq"):
        first = 3 * (_known("quarters", quarter) or int(quarter)) - 2
    elif half := found.get("h"):
        first, count = 6 * _known("halves", half) - 5, 6
    elif season := found.get("s"):
        first = _known("seasons", season)
    if not first:
        return None
    years, month = divmod(first + count - 2, 12)
    return date(year, first, 1), _month_end(year + years, month + 1)


def _week_of_year(year: int, week: int) -> tuple[date, date] | None:
    """Monday to Sunday, as ISO 8601 counts weeks."""
    try:
        monday = date.fromisocalendar(year, week, 1)
    except ValueError:
        return None
    return monday, monday + timedelta(days=6)


def _week_of_month(year: int, month: int, week: int) -> tuple[date, date] | None:
    """Seven days from the first one on; 0: the last seven. The fifth week ends with the month."""
    if not 1 <= month <= 12:
        return None
    end = _month_end(year, month)
    if not week:
        return end - timedelta(days=6), end
    first = 7 * week - 6
    return (
        (date(year, month, first), min(date(year, month, first) + timedelta(days=6), end)) if first <= end.day else None
    )


def _known(field: Literal["quarters", "halves", "units", "seasons", "parts"], word: str) -> int:
    """What a word counts; 0 when no language knows it."""
    return next((table[word] for dates in _dates() if word in (table := getattr(dates, field))), 0)


def _of_calendar(year: int, month: int, day: str | None) -> tuple[date, date] | None:
    """A year, a month or a day of it; None when there is no such day."""
    try:
        if month and day:
            return (date(year, month, int(day)),) * 2
        return (date(year, month, 1), _month_end(year, month)) if month else (date(year, 1, 1), date(year, 12, 31))
    except ValueError:
        return None


def _relative(word: str, today: date) -> tuple[date, date]:
    unit, back = next(dates.relative[word] for dates in _dates() if word in dates.relative)
    if unit == "day":
        return (today - timedelta(days=back),) * 2
    if unit == "year":
        return date(today.year - back, 1, 1), date(today.year - back, 12, 31)
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, monday + timedelta(days=6)
    months = 3 if unit == "quarter" else 1
    first = today.year * 12 + (today.month - 1) // months * months - back * months
    year, month = divmod(first, 12)
    end = divmod(first + months - 1, 12)
    return date(year, month + 1, 1), _month_end(end[0], end[1] + 1)


def _month_end(year: int, month: int) -> date:
    return date(year, month, calendar.monthrange(year, month)[1])


def _follows(one: DateSpan, other: DateSpan) -> bool:
    return one.last is not None and other.first is not None and one.last + timedelta(days=1) == other.first
