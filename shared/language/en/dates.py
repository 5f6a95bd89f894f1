"""Spans of time in English: "in March 2026", "since 2025", "last week"."""

from __future__ import annotations

import re

from shared.language.base import Bend, DateUnit, DateWords

_NAME = (
    r"(?P<n>january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?"
)
_EDGE, _END = r"(?<![a-z0-9_\-/.])", r"(?![a-z0-9_\-/]|\.\d)"
_YEAR, _OTHER_YEAR = r"(?P<y>(?:19|20)\d\d)", r"(?P<yy>(?:19|20)\d\d)"
_ORDINAL = "first|second|third|fourth|1st|2nd|3rd|4th"
_SUFFIX = "(?:st|nd|rd|th)?"
_MONTH_NAME = _NAME.replace("?P<n>", "?:")
_SEASON = "spring|summer|autumn|fall|winter"
#: Which third or half of a month, a quarter or a year is meant.
_THIRD = (
    r"(?:(?:the )?(?:very )?(?P<part>early|mid|late|beginning|start|middle|end|(?:first|second|last) half)"
    r"(?: of |[- ])(?:the )?(?:month of )?)"
)
#: The first or the last so many days, weeks or months of what follows.
_EDGE_OF = r"(?:the )?(?:very )?(?P<edge>first|last|final) (?P<c>\d{1,2}) (?P<cu>day|week|month|quarter)s? (?:of|in) "
#: The week of the day that follows.
_WEEK_OF = r"(?:the )?week (?P<wd>of|around|containing|with|starting|beginning)(?: on)? (?:the )?(?:monday,? )?"
_WEEKDAY = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_SAME_THIRD = _THIRD.replace("?P<part>", "?:")
#: A part of a year, without the year.
_PART = (
    rf"(?:{_SAME_THIRD}?(?:{_MONTH_NAME} \d{{1,2}}{_SUFFIX}|\d{{1,2}}{_SUFFIX} (?:of )?{_MONTH_NAME}|{_MONTH_NAME}"
    rf"|[qh][1-4]|(?:the )?(?:{_ORDINAL}|last) (?:quarter|half)|{_SEASON}|(?:calendar )?week \d{{1,2}})(?!\w))"
)
_OF_YEAR = r",? (?:of |in )?(?:the year )?"
_SHARED_JOIN = (
    r"(?:\s*(?:, and|,|[-–—~])\s*|\s+(?:to|until|till|through|and|or|up to|up until)"
    r"(?: the| in| from| of| during)?(?: end of)? )"
)
_DAYS_TO = "(?: to | and | until |[-–])"
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_CENTURY = "(?:19|20)\\d\\d"
#: Before a part of a year that is said without it.
_BARE_LEAD = r"(?:in|since|before|after|until|till|by|from|between|during|dated)(?: the)?"
_UNITS: tuple[DateUnit, ...] = ("year", "month", "week", "quarter")
_BENDS: dict[str, Bend] = {
    **dict.fromkeys(("not before", "no earlier than", "on or after", "not earlier than", "from and including"), "from"),
    **dict.fromkeys(("not after", "on or before", "ending", "ending in", "not later than", "as late as"), "until"),
    **dict.fromkeys(("after but not including", "only after"), "after"),
    **dict.fromkeys(("up to but not including", "up to but excluding", "until but not including"), "before"),
    **dict.fromkeys(("since", "starting", "starting in", "starting from", "later", "onward", "onwards"), "from"),
    **dict.fromkeys(("after", "later than", "newer than", "more recent than"), "after"),
    **dict.fromkeys(("predate", "predates", "predating"), "before"),
    **dict.fromkeys(("postdate", "postdates", "postdating"), "after"),
    "on": "from",
    **dict.fromkeys(("before", "prior to", "earlier than", "older than"), "before"),
    **dict.fromkeys(
        ("until", "till", "through", "up to", "up to and including", "by", "no later than", "earlier"), "until"
    ),
}

DATES = DateWords(
    spans=(
        re.compile(rf"{_EDGE}{_WEEK_OF}(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_NAME},? {_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_WEEK_OF}{_NAME} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? {_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_WEEK_OF}{_YEAR}-(?P<m>\d\d)-(?P<d>\d\d){_END}"),
        re.compile(rf"{_EDGE}{_EDGE_OF}{_NAME},? (?:of )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_EDGE_OF}(?:the year )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_EDGE_OF}(?P<rel>(?:this|last) (?:year|month))(?!\w)"),
        re.compile(rf"{_EDGE}{_THIRD}(?:q(?P<q>[1-4]) (?:of )?{_YEAR}|{_OTHER_YEAR} ?q(?P<qq>[1-4])){_END}"),
        re.compile(rf"{_EDGE}{_THIRD}{_YEAR}[-/](?P<m>0[1-9]|1[0-2]){_END}"),
        re.compile(rf"{_EDGE}(?:the )?(?P<wm>{_ORDINAL}|last) week (?:of |in ){_NAME},? (?:of )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_THIRD}{_NAME},? (?:of )?{_YEAR}{_END}"),
        re.compile(rf"{_EDGE}{_THIRD}(?:year )?{_YEAR}{_END}"),
        re.compile(rf"(?<!\w){_THIRD}(?P<rel>(?:this|last|previous) (?:year|month|quarter))(?!\w)"),
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
        re.compile(
            r"(?<!\w)(?:(?:in|over|within|during|for) )?(?:the )?(?:last|past) (?P<n>\d{1,3}) "
            r"(?P<unit>day|week|month|quarter|year)s?(?!\w)"
        ),
        re.compile(
            r"(?<!\w)(?:(?:in|over|within|during) the (?:last|past)|(?:the )?past) (?P<unit>day|week|month|year)(?!\w)"
        ),
        re.compile(
            r"(?<!\w)(?:the )?(?P<rel>today|yesterday|day before yesterday"
            r"|(?:this|last|previous|past) (?:year|month|week|quarter))(?!\w)"
        ),
        re.compile(
            r"(?<!\w)(?:(?:in|over|within|during|for) )?(?:the )?(?:next|coming|following|upcoming) (?P<n>\d{1,3}) "
            r"(?P<ahead>day|week|month|quarter|year)s?(?!\w)"
        ),
        re.compile(r"(?<!\w)within (?P<n>\d{1,3}) (?P<ahead>day|week|month|year)s?(?: from (?:now|today))?(?!\w)"),
        re.compile(
            r"(?<!\w)(?:that (?:are|is) |which (?:are|is) )?(?:older than|more than|over) (?P<n>\d{1,3}) "
            r"(?P<older>day|week|month|quarter|year)s?(?: old| ago)(?!\w)"
        ),
        re.compile(
            r"(?<!\w)(?:that (?:are|is) |which (?:are|is) )?older than (?P<n>\d{1,3}) "
            r"(?P<older>day|week|month|quarter|year)s?(?!\w)"
        ),
        re.compile(
            r"(?<!\w)(?:that (?:are|is) |which (?:are|is) )?(?:newer|younger) than (?P<n>\d{1,3}) "
            r"(?P<unit>day|week|month|quarter|year)s?(?: old)?(?!\w)"
        ),
        re.compile(r"(?<!\w)less than (?P<n>\d{1,3}) (?P<unit>day|week|month|quarter|year)s? (?:old|ago)(?!\w)"),
        re.compile(r"(?<!\w)(?P<rel>tomorrow|(?:next|coming|following) (?:year|month|week|quarter))(?!\w)"),
        re.compile(r"(?<![\w'])(?:the )?(?P<dec>(?:19|20)\d0|[3-9]0)'?s(?!\w)"),
    ),
    months={name: number for number, name in enumerate(_MONTHS, 1)},
    quarters={word: place % 4 + 1 for place, word in enumerate(_ORDINAL.split("|"))} | {"last": 4},
    halves={"first": 1, "1st": 1, "1": 1, "second": 2, "2nd": 2, "last": 2, "2": 2},
    parts={
        **dict.fromkeys(("early", "beginning", "start"), (1, 3)), **dict.fromkeys(("mid", "middle"), (2, 3)),
        **dict.fromkeys(("late", "end"), (3, 3)), "first half": (1, 2), "second half": (2, 2), "last half": (2, 2),
        "first": (1, 2), "last": (2, 2), "final": (2, 2),
    },
    points=("beginning", "start", "mid", "middle", "end"),
    seasons={"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12},
    shared_years=(
        *(
            (re.compile(rf"(?<![\w-]){word} (?=(?:day|week|month|quarter|year)s(?!\w))"), f"{number} ")
            for number, word in enumerate(_NUMBERS, 1)
        ),
        (re.compile(r"(?<![\w-])(first|last|past) (?:couple of|(?:1 )?half (?:a )?)(?=year)"), r"\1 6 months"),
        (re.compile(rf"(?<![\w\-/.])({_CENTURY}) ?[-–—~] ?(?={_CENTURY}(?![\w\-/.]))"), r"year \1 to "),
        (re.compile(rf"({_CENTURY}), (?={_CENTURY},? (?:and|or) {_CENTURY}|{_CENTURY}, {_CENTURY})"), r"\1 and "),
        (re.compile(r"(?<!\w)final (?=quarter|half)"), "last "),
        (re.compile(rf"({_CENTURY}),? \(?(?:inclusive|included|incl\.?)\)?(?!\w)"), r"\1"),
        (re.compile(r"(?<!\w)(?:so far this year|(?:this )?year to date)(?!\w)"), "this year"),
        (
            re.compile(
                r"(?<!\w)((?:since|by|before|at) the (?:end|start|beginning|middle)) of the (year|month|quarter)"
                r"(?! of| \d|\w)"
            ),
            r"\1 of this \2",
        ),
        (re.compile(rf"(?<!\w)(?:the )?(?:\d{{1,2}} )?months? (?:of )?(?={_MONTH_NAME}(?!\w))"), ""),
        (re.compile(r"(?<!\w)(?:the )?current (?=(?:year|month|quarter|week)(?!\w))"), "this "),
        (re.compile(rf"(?<!\w)(?:the )?(?:end of (?:the )?year|year[- ]end) (?={_CENTURY})"), "end of "),
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
    yearless=re.compile(
        rf"(?<![\w-])(?:{_BARE_LEAD} (?P<part>(?P<bare>(?!(?:the )?(?:last |h\d|{_SEASON})){_PART}))"
        rf"(?!{_OF_YEAR}{_CENTURY}|,? (?:of )?(?:this|last|previous) year|[-/]?\w| of| \d)"
        rf"|(?P<part_past>(?:last|this past) (?P<past>{_MONTH_NAME}|{_SEASON}))(?!,? (?:of )?{_CENTURY}|\w))"
    ),
    stray_ahead=re.compile(
        rf"(?<![\w-])(?:(?:half|quarters?|weeks?|weekends?|months?|days?|nights?|years?|{_WEEKDAY}s?|first|second|third"
        r"|fourth|last|past|previous|next|early|mid|late|end|ends|start|beginning|middle|turn|eve|before|after|since"
        r"|until|till|through|excluding|following|preceding|every|each|odd|even|alternate|around|circa|roughly"
        r"|approximately|side|summer|winter|spring|autumn|fiscal|fy|christmas|easter)"
        r"(?: (?:of|in|from|the|on|at|before|after|to|and|or))*[ -]*)$"
    ),
    stray_behind=re.compile(
        r"^[ ,]*(?:\(?(?:exclusive|excluded|excl|inclusive|included|not included|not including)(?!\w)"
        r"|ago(?!\w)|or so(?!\w)"
        rf"|(?:and |or |to |through |until |till |up to |[-–—~/] ?)(?:the )?"
        rf"(?:{_MONTH_NAME}|[qh][1-4]|{_SEASON}|\d{{1,2}}"
        r"|(?:end|middle|beginning|start) of|mid|early|late|next|beyond|before|after|surrounding)(?!\w)"
        r"|(?:fiscal|financial) year|fy|'\d\d|/\d\d)"
    ),
    named_year=re.compile(rf"(?<!\w){_PART}{_OF_YEAR}(?P<rel>(?:this|last|previous) year)(?!\w)"),
    relative={
        "today": ("day", 0),
        "yesterday": ("day", 1),
        "day before yesterday": ("day", 2),
        "tomorrow": ("day", -1),
        **{
            f"{word} {unit}": (unit, back)
            for word, back in (
                ("this", 0), ("last", 1), ("previous", 1), ("past", 1), ("next", -1), ("coming", -1), ("following", -1)
            )
            for unit in _UNITS
        },
    },
    units={"day": "day", "week": "week", "month": "month", "quarter": "quarter", "year": "year"},
    ahead=re.compile(
        r"(?<![a-z])(?P<word>not before|no earlier than|not earlier than|on or after|from and including|not after"
        r"|on or before|ending(?: in)?|not later than|as late as|after but not including|only after"
        r"|up to but (?:not including|excluding)|until but not including|no later than"
        r"|since|starting(?: in| from)?|after|before|prior to|until|till|through"
        r"|up to(?: and including)?|by|predat(?:e|es|ing)|postdat(?:e|es|ing)"
        r"|earlier than|later than|newer than|more recent than|older than)"
        r"(?: the)? $"
    ),
    behind=(r"(?:and |or )?(?:later|onwards?|earlier|on(?=\s*(?:$|[?.!,;])))",),
    bends=_BENDS | {f"{joint} {word}": _BENDS[word] for joint in ("and", "or") for word in ("later", "earlier")}
    | {f"{joint} {word}": "from" for joint in ("and", "or") for word in ("onward", "onwards")},
    verbs=("starting", "starting in", "ending", "ending in"),
    lead=(
        r"(?<![a-z])(?:in|on|of|from|during|dated|between|for|at|within|throughout|over|(?:the )?year)(?: the)? ",
    ),
    join=(", and", ",", "to", "until", "till", "through", "and", "or"),
    either=("or",),
    reach=("to", "until", "till", "through"),
    join_tail=("(?:also )?(?:in |from |of |during |on )?(?:the )?",),
    year_lead=(
        "in", "of", "from", "during", "since", "after", "before", "until", "till", "by", "to", "and", "or", "through",
        "between", "dated", "than", "including", "year", "the", "all", "every", "our", "my", "for",
        "within", "throughout", "across", "over", "except", "excluding", "but", "not", "outside",
    ),
    between=("between",),
    days=(
        re.compile(r"(?P<day>\d{1,2})\.? (?P<month>[A-Za-z]{3,9})\.?,? (?P<year>\d{4})(?!\d)"),
        re.compile(r"(?P<month>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})(?!\d)"),
    ),
)  # fmt: skip
