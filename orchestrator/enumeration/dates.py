"""The span of time that a question names: "in March 2026", "since 2025", "去年", "2026年3月". Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = (
    r"(?P<{0}>january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?"
)
_EDGE, _END = r"(?<![\w\-/.])", r"(?![\w\-/]|\.\d)"
_YEAR = r"(?P<{0}>(?:19|20)\d\d)"
_BEFORE_YEAR = (
    r"(?:in|of|from|during|since|after|before|until|till|by|to|and|or|through|between|dated|year|the|all|every|our|my"
    r"|for|-)"
)
_SPANS = tuple(
    re.compile(text)
    for text in (
        rf"{_EDGE}{_YEAR.format('y')}[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}}){_END}",
        rf"{_EDGE}(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_NAME.format('n')},? {_YEAR.format('y')}{_END}",
        rf"{_EDGE}{_NAME.format('n')} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? {_YEAR.format('y')}{_END}",
        rf"{_EDGE}{_NAME.format('n')},? (?:of )?{_YEAR.format('y')}{_END}",
        rf"{_EDGE}(?:q(?P<q>[1-4]) (?:of )?{_YEAR.format('y')}|{_YEAR.format('yy')} ?q(?P<qq>[1-4])){_END}",
        rf"{_YEAR.format('y')} ?年(?:第?(?P<q>[1-4一二三四]) ?季度?|(?P<h>[上下])半年)",
        rf"{_YEAR.format('y')} ?年 ?(?P<m>\d{{1,2}}) ?月(?: ?(?P<d>\d{{1,2}}) ?[日号])?份?",
        rf"{_YEAR.format('y')} ?年度?",
        rf"{_EDGE}{_YEAR.format('y')}[-/](?P<m>0[1-9]|1[0-2]){_END}",
        r"(?<!\w)(?P<rel>today|yesterday|(?:this|last|previous) (?:year|month|week|quarter))(?!\w)",
        r"(?P<rel>今天|昨天|今年|去年|前年|本年|本月|这个月|上个?月|本周|这周|上周)份?",
        r"(?<!\w)(?:in |over |within )?the (?:last|past) (?P<n>\d{1,3}) (?P<unit>day|week|month|year)s?(?!\w)",
        r"(?:最近|过去|近)(?P<n>\d{1,3}) ?个?(?P<unit>天|日|周|月|年)(?:内|里)?",
        rf"(?P<lead>^|(?<![a-z]){_BEFORE_YEAR} ){_YEAR.format('y')}{_END}",
    )
)
_BEHIND = re.compile(r"\s*(?P<word>以前|之前|前|以后|之后|后|以来|至今|起|(?:and |or )?(?:later|onwards?|earlier))")
_AHEAD = re.compile(
    r"(?<![a-z])(?P<word>since|starting(?: in| from)?|after|before|prior to|until|till|through|up to|by|no later than"
    r"|earlier than|later than)(?: the)? $|(?P<zh>自从?|从|截至|早于|晚于|在)\s*$"
)
_LEAD = re.compile(r"(?:(?<![a-z])(?:in|on|of|from|during|dated|between|for|at|the year|year)(?: the)? |在|于|从|自)$")
_JOIN = re.compile(r"\s*(?:to|until|till|through|and|-|–|—|~|至|到|和|与|或|or)\s*(?:the |in |from )?")
_TO = re.compile(r"\s*(?:to|until|till|through|-|–|—|~|至|到)")
_QUARTERS = {"一": 1, "二": 2, "三": 3, "四": 4}


_FROM = frozenset({"since", "以来", "至今", "起", "自", "自从"})


class Span(NamedTuple):
    """Days from `first` to `last` (inclusive, None: open) and where they stand in the text."""

    first: date | None
    last: date | None
    start: int
    end: int


def spans(text: str, today: date) -> Span | None:
    """The one span of time in a folded question; None when there is none, or several that do not join.

    "2024 and 2025" joins to two years, "from May 2025 to July 2025" to three months; "2023 and 2025" does not join.
    """
    found = sorted(_all(text, today), key=lambda span: span.start)
    if not found:
        return None
    joined = found[0]
    for span in found[1:]:
        between = _JOIN.fullmatch(text[joined.end : span.start])
        reach = _TO.match(text[joined.end : span.start]) or _between(text, joined.start)
        if not between or not (reach or _follows(joined, span)):
            return None
        joined = Span(joined.first, span.last, joined.start, span.end)
    if joined.first and joined.last and joined.first > joined.last:
        return None
    return joined._replace(start=_begun(text, joined.start))


def several(text: str, today: date) -> bool:
    """True when the text names spans of time that do not join to one."""
    return spans(text, today) is None and next(_all(text, today), None) is not None


def _all(text: str, today: date) -> Iterator[Span]:
    taken: list[tuple[int, int]] = []
    for each in _SPANS:
        for found in each.finditer(text):
            start = found.start("y") if "lead" in each.groupindex else found.start()
            if any(start < end and found.end() > begun for begun, end in taken):
                continue
            days = _days(found.groupdict(), today)
            if days is not None:
                taken.append((start, found.end()))
                yield _bent(text, Span(*days, start, found.end()))


def _bent(text: str, span: Span) -> Span:
    """The span under its preposition: "since" opens its end, "before" its beginning and leaves the span itself out."""
    first, last, start, end = span
    word = ""
    if ahead := _AHEAD.search(text[max(0, start - 20) : start]):
        word, start = ahead["word"] or ahead["zh"] or "", start - len(ahead[0])
    if behind := _BEHIND.match(text, end):
        word, end = f"{word if word in {'before', 'after'} else ''}{behind['word']}", behind.end()
    day = timedelta(days=1)
    if word in _FROM or word.startswith("starting") or word.endswith(("onward", "onwards", "later")):
        return Span(first, None, start, end)
    if word in {"after", "later than", "以后", "之后", "后", "晚于"}:
        return Span(last + day if last else None, None, start, end)
    if word in {"before", "prior to", "earlier than", "以前", "之前", "前", "早于"}:
        return Span(None, first - day if first else None, start, end)
    if word in {"until", "till", "through", "up to", "by", "no later than", "截至"} or word.endswith("earlier"):
        return Span(None, last, start, end)
    return Span(first, last, start, end)


def _days(found: dict[str, str | None], today: date) -> tuple[date, date] | None:
    if rel := found.get("rel"):
        return _relative(rel, today)
    if unit := found.get("unit"):
        return _back(int(found["n"] or 0), unit, today), today
    year = int(found.get("y") or found.get("yy") or 0)
    quarter = found.get("q") or found.get("qq")
    if quarter:
        first = 3 * (_QUARTERS.get(quarter) or int(quarter)) - 2
        return date(year, first, 1), _month_end(year, first + 2)
    if half := found.get("h"):
        return (date(year, 1, 1), date(year, 6, 30)) if half == "上" else (date(year, 7, 1), date(year, 12, 31))
    name, number = found.get("n"), found.get("m")
    return _of_calendar(year, _MONTHS.index(name[:3]) + 1 if name else int(number or 0), found.get("d"))


def _of_calendar(year: int, month: int, day: str | None) -> tuple[date, date] | None:
    """A year, a month or a day of it; None when there is no such day."""
    try:
        if month and day:
            return (date(year, month, int(day)),) * 2
        return (date(year, month, 1), _month_end(year, month)) if month else (date(year, 1, 1), date(year, 12, 31))
    except ValueError:
        return None


def _relative(word: str, today: date) -> tuple[date, date]:
    if word in {"today", "今天"}:
        return today, today
    if word in {"yesterday", "昨天"}:
        return (today - timedelta(days=1),) * 2
    back = word.startswith(("last", "previous", "去", "上")) + 2 * word.startswith("前")
    if "year" in word or "年" in word:
        return date(today.year - back, 1, 1), date(today.year - back, 12, 31)
    if "week" in word or "周" in word:
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, monday + timedelta(days=6)
    months = 3 if "quarter" in word else 1
    first = today.year * 12 + (today.month - 1) // months * months - back * months
    year, month = divmod(first, 12)
    end = divmod(first + months - 1, 12)
    return date(year, month + 1, 1), _month_end(end[0], end[1] + 1)


def _back(count: int, unit: str, today: date) -> date:
    days = {"day": 1, "天": 1, "日": 1, "week": 7, "周": 7, "month": 30, "月": 30, "year": 365, "年": 365}[unit]
    return today - timedelta(days=min(count * days, 36_500))


def _month_end(year: int, month: int) -> date:
    return date(year, month, calendar.monthrange(year, month)[1])


def _follows(one: Span, other: Span) -> bool:
    return one.last is not None and other.first is not None and one.last + timedelta(days=1) == other.first


def _between(text: str, start: int) -> bool:
    return text[:start].rstrip().endswith(("between", "从", "自"))


def _begun(text: str, start: int) -> int:
    """Where the preposition before the span begins."""
    lead = _LEAD.search(text[max(0, start - 20) : start])
    return start - len(lead[0]) if lead else start
