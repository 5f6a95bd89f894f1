"""The spans of time that a question names: "in March 2026", "since 2025", 去年. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from orchestrator.planning.lists.periods import Period, bent_part, date_words, is_choice, period, whole_of
from shared.language import alternatives, derived
from shared.language.base import Bend, DateWords
from shared.language.tables import with_lists

_EDGE, _END = r"(?<![a-z0-9_\-/.])", r"(?![a-z0-9_\-/]|\.\d)"
_YEAR = r"(?P<y>(?:19|20)\d\d)"
_DAY = re.compile(rf"{_EDGE}{_YEAR}[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}}){_END}")
_MONTH = re.compile(rf"{_EDGE}{_YEAR}[-/](?P<m>0[1-9]|1[0-2]){_END}")
#: A day or a year that may be one of two: 3/5/2026, 2024/25.
_AMBIGUOUS = re.compile(
    r"(?<![\w\-/.])(?:\d{1,2}[./]\d{1,2}[./](?:19|20)\d\d|(?:19|20)\d\d/\d\d|(?:19|20)\d\d\.\d{1,2}(?=[^\x00-\x7f]|$))"
    r"(?![\w/]|[.\-]\d)"
)
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
_LOOK_BACK = 32
#: So many parts of a year may share it: "january, february and march 2026".
_MOST_SHARED = 12
_ONE_DAY = timedelta(days=1)


class DateSpan(NamedTuple):
    """Days from `first` to `last` (inclusive, None: open) and where they stand in the text.

    `beside`: it stands beside the one before it, "in March and in June 2026". `vague`: its days are a choice, as those
    of "early 2026". `bend`: "until" where only its end is said.
    """

    first: date | None
    last: date | None
    start: int
    end: int
    beside: bool = False
    vague: bool = False
    bend: str = ""


@derived
def _compiled(template: str) -> re.Pattern[str]:
    return re.compile(with_lists(template, lambda name: alternatives(lambda known: getattr(known.dates, name))))


def spans(text: str, today: date, *, verbs: bool = False) -> tuple[DateSpan, ...] | None:
    """The spans of time in a folded question, in order; None where one of them ends before it begins.

    "2024 and 2025" joins to two years, "from May 2025 to July 2025" to three months; "2023 and 2025" are two spans.
    `verbs`: words that may be what is done in a span are left to the reader of that: "starting in May", 5月开始的.
    """
    joined: list[DateSpan] = []
    for span in sorted(_all(text, today, verbs=verbs), key=lambda span: span.start):
        joined[-1:] = _joined(joined[-1], span, text) if joined else [span]
    if any(span.first and span.last and span.first > span.last for span in joined):
        return None
    return tuple(span if span.beside else _with_lead(span, text) for span in joined)


def _joined(one: DateSpan, other: DateSpan, text: str) -> list[DateSpan]:
    """Both as one where they say one span of time, else both."""
    between = text[one.end : other.start]
    if other.bend == "until" and one.first and not between.strip(" ,"):  # "from April until June 2026", 3月到5月
        return [one._replace(last=other.last, end=other.end, vague=one.vague or other.vague)]
    if not _compiled(_JOIN).fullmatch(between):
        return [one, other]
    opened = text[: one.start].rstrip().endswith(tuple(word for dates in date_words() for word in dates.between))
    if _compiled(_REACH).match(between) or (opened and not one.beside) or _follows(one, other):
        return [one._replace(last=other.last, end=other.end, vague=one.vague or other.vague)]
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
    for dates in date_words():
        if dates.named_year:
            text = dates.named_year.sub(lambda found, dates=dates: _with_year(found, dates, today), text)  # type: ignore[misc]
        for _ in range(_MOST_SHARED):
            before = text
            for pattern, instead in dates.shared_years:
                text = pattern.sub(instead, text)
            if text == before:
                break
    return text


def with_assumed_years(text: str, today: date) -> str:
    """The same with a year beside each part of one that has none: the latest that has begun, with "last" has ended."""
    for dates in date_words():
        if dates.yearless:
            text = dates.yearless.sub(lambda found, dates=dates: _in_latest_year(found, dates, today), text)  # type: ignore[misc]
    return with_years(text, today)


def _in_latest_year(found: re.Match[str], dates: DateWords, today: date) -> str:
    past = found.groupdict().get("past")
    for year in (today.year, today.year - 1):
        dated = dates.yearless_form.format(part=past or found["bare"], year=year)
        span = next(_all(dated, today), None)
        if span and span.first and span.last and (span.last if past else span.first) < today:
            return found[0].replace(found["part_past"] if past else found["part"], dated)
    return found[0]


def unread_time(text: str, named: Sequence[DateSpan]) -> str:
    """A span with the words of time beside it that were not read, and which make it another one; empty for none."""
    if found := next((one for one in _AMBIGUOUS.finditer(text) if not _covered(one, named)), None):
        return found[0]
    for place, span in enumerate(named):
        begin = named[place - 1].end if place else 0
        stop = named[place + 1].start if place + 1 < len(named) else len(text)
        ahead = _stray([dates.stray_ahead for dates in date_words()], text[begin : span.start])
        behind = _stray([dates.stray_behind for dates in date_words()], text[span.end : stop])
        if ahead or behind:
            return " ".join(f"{ahead}{text[span.start : span.end]}{behind}".split())
    return ""


def _stray(patterns: Sequence[re.Pattern[str] | None], text: str) -> str:
    return next((found[0] for pattern in patterns if pattern and (found := pattern.search(text))), "")


def _covered(found: re.Match[str], named: Sequence[DateSpan]) -> bool:
    return any(span.start <= found.start() and found.end() <= span.end for span in named)


def _with_year(found: re.Match[str], dates: DateWords, today: date) -> str:
    year = dates.year_form.format(today.year - dates.relative[found["rel"]][1])
    return found[0].replace(found["rel"], year)


def _all(text: str, today: date, *, verbs: bool = False) -> Iterator[DateSpan]:
    taken: list[tuple[int, int]] = []
    forms = (_DAY, *(form for dates in date_words() for form in dates.spans), _MONTH, _compiled(_BARE_YEAR))
    for each in forms:  # the longest ways to write a span come first
        for found in each.finditer(text):
            start = found.start("y") if "lead" in each.groupindex else found.start()
            if any(start < end and found.end() > begun for begun, end in taken):
                continue
            if days := period(found.groupdict(), today):
                taken.append((start, found.end()))
                yield _bent(text, found, days, start, today, verbs=verbs)


def _bent(  # noqa: PLR0913 - a span, where it stands, and how it is read
    text: str, found: re.Match[str], days: Period, start: int, today: date, *, verbs: bool
) -> DateSpan:
    """The span under its preposition: "since" opens its end, "before" its beginning and leaves the span itself out."""
    groups, word, end = found.groupdict(), "", found.end()
    head, done = text[max(0, start - _LOOK_BACK) : start], [verb for dates in date_words() for verb in dates.verbs]
    ahead = next((one for dates in date_words() if dates.ahead and (one := dates.ahead.search(head))), None)
    if ahead and not (verbs and ahead["word"] in done):
        word, start = ahead["word"], start - len(ahead[0])
    behind = _compiled(_BEHIND).match(text, end)
    verb = behind is not None and behind["word"] in done
    said = verb and ahead is None
    until = any(dates.bends.get(word) == "until" for dates in date_words())
    if behind and not (verb and (until or (said and verbs))):  # 8月到9月开始的: what is done, not since when
        word, end = behind["word"], behind.end()
    bend: Bend | None = next((dates.bends[word] for dates in date_words() if word in dates.bends), None)
    whole = whole_of(groups, today) if bend else None
    first, last = (bend and whole and bent_part(groups, whole, bend)) or days
    vague = is_choice(groups) or said
    if groups.get("older"):
        return DateSpan(None, last, start, end, vague=vague)
    if bend == "from":
        return DateSpan(first, None, start, end, vague=vague)
    if bend == "after":
        return DateSpan(last + _ONE_DAY, None, start, end, vague=vague)
    if bend == "before":
        return DateSpan(None, first - _ONE_DAY, start, end, vague=vague)
    return DateSpan(None if bend == "until" else first, last, start, end, vague=vague, bend=bend or "")


def _follows(one: DateSpan, other: DateSpan) -> bool:
    return one.last is not None and other.first is not None and one.last + timedelta(days=1) == other.first
