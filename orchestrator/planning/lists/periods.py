"""The days of one named period: a quarter, the first half of a month, the last 3 weeks. Pure."""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple, TypeVar

from shared.language import derived, languages
from shared.language.base import Bend, DateUnit, DateWords
from shared.language.text import month_number

V = TypeVar("V")
#: What the groups of a pattern found.
Found = Mapping[str, str | None]
_DAY = timedelta(days=1)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
#: A decade from this one on is one of the last century.
_CENTURY = 30
_FARTHEST = 1200
_THIRDS, _HALF_MONTH = 3, 15
#: Groups of the unit of so many days, weeks or months: back from today, on from it, and before those.
_COUNTED = ("unit", "ahead", "older")


class Period(NamedTuple):
    """Days from `first` to `last`, both of them inside."""

    first: date
    last: date


@derived
def date_words() -> tuple[DateWords, ...]:
    """What every language says of time."""
    return tuple(language.dates for language in languages())


def period(found: Found, today: date) -> Period | None:
    """The days that are named; None where there are no such days."""
    try:
        whole = _whole(found, today)
        if whole and (place := _known("parts", found.get("part"))):
            return _part_of(whole, *place)
        if whole and (edge := _known("parts", found.get("edge"))):
            return _edge_of(whole, edge[0] == 1, int(found["c"] or 0), _known("units", found.get("cu")))
    except (ValueError, OverflowError):
        return None
    return whole


def bent_part(found: Found, whole: Period, bend: Bend) -> Period | None:
    """A part of a period as one day behind a preposition: before the end of March is until its last day."""
    word = found.get("part")
    if not word or not any(word in dates.points for dates in date_words()):
        return None
    (place, of), end = _known("parts", word) or (1, 1), whole.last
    if place == 1:
        day = whole.first
    elif place == of:  # "before the end" has its last day
        return Period(end + _DAY, end) if bend == "before" else Period(end, end)
    elif whole.first.month == end.month:
        day = whole.first + timedelta(days=_HALF_MONTH - 1)
    else:
        months = (end.year - whole.first.year) * 12 + end.month - whole.first.month + 1
        day = months_on(whole.first, months // 2) - _DAY * (bend in {"until", "after"})
    return Period(day, day)


def is_choice(found: Found) -> bool:
    """True where the days are a choice: those of "early 2026" and of "the last three months"."""
    return (_known("parts", found.get("part")) or (1, 1))[1] == _THIRDS or any(
        map(found.get, ("unit", "ahead", "older"))
    )


def whole_of(found: Found, today: date) -> Period | None:
    """The period that a part is a part of."""
    try:
        return _whole(found, today)
    except (ValueError, OverflowError):
        return None


def _whole(found: Found, today: date) -> Period | None:
    if rel := found.get("rel"):
        return _relative(rel, today)
    if days := _from_today(found, today):
        return days
    if decade := found.get("dec"):
        start = int(decade) if len(decade) > 2 else int(decade) + (1900 if int(decade) >= _CENTURY else 2000)
        return Period(date(start, 1, 1), date(start + 9, 12, 31))
    year = int(found.get("y") or found.get("yy") or 0)
    name, number = found.get("n"), found.get("m")
    month = month_number(name) if name else int(number or 0)
    if week := found.get("w"):
        monday = date.fromisocalendar(year, int(week), 1)
        return Period(monday, monday + 6 * _DAY)
    if week := found.get("wm"):
        return _week_of_month(date(year, month, 1), 0 if week == "last" else _known("quarters", week) or int(week))
    days = _months(found, year) or _of_calendar(year, month, found.get("d"))
    return _week_of(days.first) if found.get("wd") else days


def _from_today(found: Found, today: date) -> Period | None:
    """The last or the next so many days, weeks or months, or all time before them."""
    count = int(found.get("n") or 1) if any(map(found.get, _COUNTED)) else 0
    if unit := _known("units", found.get("unit")):
        return Period(_back(today, unit, count), today)
    if unit := _known("units", found.get("ahead")):
        return Period(today, _back(today, unit, -count))
    unit = _known("units", found.get("older"))
    return Period(date.min, _back(today, unit, count) - _DAY) if unit else None


def _part_of(whole: Period, place: int, of: int) -> Period | None:
    """A third of a month, by tens of days, a half of it, by fifteen, or one of a longer one, by months."""
    first, last = whole
    if first == last:
        return None
    months = (last.year - first.year) * 12 + last.month - first.month + 1
    if months == 1:
        if first.day != 1 or last != month_end(first):
            return None
        size = 10 if of == _THIRDS else _HALF_MONTH
        start = first + (place - 1) * size * _DAY
        return Period(start, last if place == of else start + (size - 1) * _DAY)
    if months % of:
        return None
    size = months // of
    return Period(months_on(first, (place - 1) * size), months_on(first, place * size) - _DAY)


def _edge_of(whole: Period, at_start: bool, count: int, unit: DateUnit | None) -> Period | None:
    """The first or the last so many days, weeks, months or quarters of a period; None where it has not so many."""
    if not unit or not count:
        return None
    if unit in _MONTHS:
        months = count * _MONTHS[unit]
        days = Period(whole.first, months_on(whole.first, months) - _DAY)
        if not at_start:
            days = Period(months_on(whole.last + _DAY, -months), whole.last)
    else:
        length = count * (7 if unit == "week" else 1) - 1
        days = Period(whole.first, whole.first + length * _DAY)
        if not at_start:
            days = Period(whole.last - length * _DAY, whole.last)
    return days if whole.first <= days.first and days.last <= whole.last else None


def _back(today: date, unit: DateUnit, count: int) -> date:
    sign = 1 if count > 0 else -1
    if unit in _MONTHS:
        return months_on(today, -sign * min(abs(count) * _MONTHS[unit], _FARTHEST))
    return today - sign * min(abs(count) * (7 if unit == "week" else 1), 30 * _FARTHEST) * _DAY


def _months(found: Found, year: int) -> Period | None:
    """A quarter, a half or a season of a year; None where none is named."""
    first, count = 0, 3
    if quarter := found.get("q") or found.get("qq"):
        first = 3 * (_known("quarters", quarter) or int(quarter)) - 2
    elif half := found.get("h"):
        first, count = 6 * (_known("halves", half) or 1) - 5, 6
    elif season := found.get("s"):
        first = _known("seasons", season) or 0
    return Period(date(year, first, 1), months_on(date(year, first, 1), count) - _DAY) if first else None


def _week_of(day: date) -> Period:
    monday = day - timedelta(days=day.weekday())
    return Period(monday, monday + 6 * _DAY)


def _week_of_month(start: date, week: int) -> Period | None:
    """Seven days from the first one on; 0: the last seven. The fifth week ends with the month."""
    end = month_end(start)
    if not week:
        return Period(end - 6 * _DAY, end)
    first = start + 7 * (week - 1) * _DAY
    return Period(first, min(first + 6 * _DAY, end)) if first <= end else None


def _known(name: str, word: str | None) -> V | None:
    """What a word stands for in the tables of that name; None when no language knows it."""
    return next((table[word] for dates in date_words() if word in (table := getattr(dates, name))), None)


def _of_calendar(year: int, month: int, day: str | None) -> Period:
    """A year, a month or a day of it; ValueError when there is no such day."""
    if month and day:
        return Period(*(date(year, month, int(day)),) * 2)
    return Period(date(year, month, 1), month_end(date(year, month, 1))) if month else _year(year)


def _year(year: int) -> Period:
    return Period(date(year, 1, 1), date(year, 12, 31))


def _relative(word: str, today: date) -> Period:
    unit, back = next(dates.relative[word] for dates in date_words() if word in dates.relative)
    if unit == "day":
        return Period(*(today - back * _DAY,) * 2)
    if unit == "year":
        return _year(today.year - back)
    if unit == "week":
        return _week_of(today - 7 * back * _DAY)
    months = _MONTHS[unit]
    start = months_on(today.replace(month=(today.month - 1) // months * months + 1, day=1), -back * months)
    return Period(start, months_on(start, months) - _DAY)


def months_on(day: date, months: int) -> date:
    """The same day so many months later; the last one of a month that has it not."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def month_end(day: date) -> date:
    """The last day of the month of `day`."""
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])
