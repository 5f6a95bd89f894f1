"""Spans of time in English: "in March 2026", "since 2025", "last week"."""

from __future__ import annotations

import re

from shared.language.base import Bend, DateUnit, DateWords

_NAME = (
    r"(?P<n>january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?"
)
_EDGE, _END = r"(?<![\w\-/.])", r"(?![\w\-/]|\.\d)"
_YEAR, _OTHER_YEAR = r"(?P<y>(?:19|20)\d\d)", r"(?P<yy>(?:19|20)\d\d)"
_ORDINAL = "first|second|third|fourth|1st|2nd|3rd|4th"
_SUFFIX = "(?:st|nd|rd|th)?"
_MONTH_NAME = _NAME.replace("?P<n>", "?:")
_SEASON = "spring|summer|autumn|fall|winter"
#: Which third of a month or of a year is meant.
_THIRD = r"(?:(?:the )?(?:very )?(?P<part>early|mid|late|beginning|start|middle|end)(?: of |[- ])(?:the )?)"
_SAME_THIRD = _THIRD.replace("?P<part>", "?:")
#: A part of a year, without the year.
_PART = (
    rf"(?:{_SAME_THIRD}?(?:{_MONTH_NAME} \d{{1,2}}{_SUFFIX}|\d{{1,2}}{_SUFFIX} (?:of )?{_MONTH_NAME}|{_MONTH_NAME}"
    rf"|[qh][1-4]|(?:the )?(?:{_ORDINAL}|last) (?:quarter|half)|{_SEASON}|(?:calendar )?week \d{{1,2}})(?!\w))"
)
_OF_YEAR = r",? (?:of |in )?(?:the year )?"
_SHARED_JOIN = (
    r"(?:\s*(?:, and|,|[-–—~])\s*|\s+(?:to|until|till|through|and|or|up to|up until)(?: the| in| from)?(?: end of)? )"
)
_DAYS_TO = "(?: to | and | until |[-–])"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNITS: tuple[DateUnit, ...] = ("year", "month", "week", "quarter")
_BENDS: dict[str, Bend] = {
    **dict.fromkeys(("since", "starting", "starting in", "starting from", "later", "onward", "onwards"), "from"),
    **dict.fromkeys(("after", "later than", "newer than", "more recent than"), "after"),
    **dict.fromkeys(("before", "prior to", "earlier than", "older than"), "before"),
    **dict.fromkeys(
        ("until", "till", "through", "up to", "up to and including", "by", "no later than", "earlier"), "until"
    ),
}

DATES = DateWords(
    spans=(
        re.compile(rf"{_EDGE}(?:the )?(?P<wm>{_ORDINAL}|last) week (?:of |in ){_NAME},? (?:of )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_THIRD}{_NAME},? (?:of )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_THIRD}(?:year )?{_YEAR}{_END}"),
        re.compile(rf"(?<!\w){_THIRD}(?P<rel>(?:this|last|previous) (?:year|month))(?!\w)"),
        re.compile(rf"{_EDGE}(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_NAME},? {_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_NAME} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? {_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_NAME},? (?:of )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}(?:q(?P<q>[1-4]) (?:of )?{_YEAR}|{_OTHER_YEAR} ?q(?P<qq>[1-4])){_END}"),
        re.compile(rf"{_EDGE}(?:the )?(?P<q>{_ORDINAL}|last) quarter,? (?:of |in )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}(?:the )?(?P<h>first|second|1st|2nd|last) half,? (?:of |in )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}h(?P<h>[12]),? (?:of )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_YEAR} ?h(?P<h>[12]){_END}"),
        re.compile(rf"{_EDGE}(?:the )?(?P<s>{_SEASON}),? (?:of )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}(?:calendar )?week (?P<w>\d{{1,2}}),? (?:of |in )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_YEAR}-?w(?P<w>\d{{2}}){_END}"),
        re.compile(r"(?<!\w)(?P<rel>today|yesterday|(?:this|last|previous) (?:year|month|week|quarter))(?!\w)"),
        re.compile(
            r"(?<!\w)(?:in |over |within )?the (?:last|past) (?P<n>\d{1,3}) (?P<unit>day|week|month|year)s?(?!\w)"
        ),
    ),
    months={name: number for number, name in enumerate(_MONTHS, 1)},
    quarters={word: place % 4 + 1 for place, word in enumerate(_ORDINAL.split("|"))} | {"last": 4},
    halves={"first": 1, "1st": 1, "1": 1, "second": 2, "2nd": 2, "last": 2, "2": 2},
    parts={"early": 1, "beginning": 1, "start": 1, "mid": 2, "middle": 2, "late": 3, "end": 3},
    seasons={"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12},
    shared_years=(
        (re.compile(r"(?<!\w)(to|until|till|up to) (?:now|the present|date)(?!\w)"), r"\1 today"),
        (re.compile(r"(?<!\w)weeks (\d{1,2})( to | and | through |[-–])(\d{1,2})(?!\w)"), r"week \1\2week \3"),
        (
            re.compile(rf"(?<![\w\-])(\d{{1,2}}){_SUFFIX}{_DAYS_TO}(?=\d{{1,2}}{_SUFFIX} (?:of )?({_MONTH_NAME}))"),
            r"\1 \2 to ",
        ),
        (
            re.compile(
                rf"(?<!\w)({_MONTH_NAME}) (\d{{1,2}}){_SUFFIX}{_DAYS_TO}(\d{{1,2}}{_SUFFIX})(?=,? (?:19|20)\d\d)"
            ),
            r"\1 \2 to \1 \3",
        ),
        (re.compile(rf"(?<!\w)({_PART})[-–—/~](?={_PART}{_OF_YEAR}(?:19|20)\d\d(?!\w))"), r"\1 to "),
        (
            re.compile(rf"(?<!\w)({_ORDINAL})({_SHARED_JOIN})(?:the )?({_ORDINAL}|last) (quarter|half)(?!\w)"),
            r"\1 \4\2\3 \4",
        ),
        (
            re.compile(rf"(?<!\w)({_PART})({_SHARED_JOIN})(?=(?:the )?{_PART}{_OF_YEAR}((?:19|20)\d\d)(?!\w))"),
            r"\1 \3\2",
        ),
        (
            re.compile(
                rf"(?<!\w)({_PART}{_OF_YEAR}((?:19|20)\d\d))({_SHARED_JOIN})({_PART})(?!{_OF_YEAR}(?:19|20)\d\d|\w| \d)"
            ),
            r"\1\3\4 \2",
        ),
        (
            re.compile(rf"(?<!\w)((?:19|20)\d\d) ?([qh][1-4])({_SHARED_JOIN})([qh][1-4])(?!\w| ?(?:19|20)\d\d)"),
            r"\1 \2\3\1 \4",
        ),
    ),
    named_year=re.compile(rf"(?<!\w){_PART}{_OF_YEAR}(?P<rel>(?:this|last|previous) year)(?!\w)"),
    relative={
        "today": ("day", 0),
        "yesterday": ("day", 1),
        **{
            f"{word} {unit}": (unit, back)
            for word, back in (("this", 0), ("last", 1), ("previous", 1))
            for unit in _UNITS
        },
    },
    units={"day": 1, "week": 7, "month": 30, "year": 365},
    ahead=re.compile(
        r"(?<![a-z])(?P<word>since|starting(?: in| from)?|after|before|prior to|until|till|through"
        r"|up to(?: and including)?|by|no later than|earlier than|later than|newer than|more recent than|older than)"
        r"(?: the)? $"
    ),
    behind=(r"(?:and |or )?(?:later|onwards?|earlier)",),
    bends=_BENDS | {f"{joint} {word}": _BENDS[word] for joint in ("and", "or") for word in ("later", "earlier")}
    | {f"{joint} {word}": "from" for joint in ("and", "or") for word in ("onward", "onwards")},
    lead=(r"(?<![a-z])(?:in|on|of|from|during|dated|between|for|at|the year|year)(?: the)? ",),
    join=(", and", ",", "to", "until", "till", "through", "and", "or"),
    either=("or",),
    reach=("to", "until", "till", "through"),
    join_tail=("(?:also )?(?:in |from |of |during |on )?(?:the )?",),
    year_lead=(
        "in", "of", "from", "during", "since", "after", "before", "until", "till", "by", "to", "and", "or", "through",
        "between", "dated", "than", "including", "year", "the", "all", "every", "our", "my", "for",
    ),
    between=("between",),
    days=(
        re.compile(r"(?P<day>\d{1,2})\.? (?P<month>[A-Za-z]{3,9})\.?,? (?P<year>\d{4})(?!\d)"),
        re.compile(r"(?P<month>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})(?!\d)"),
    ),
)  # fmt: skip
