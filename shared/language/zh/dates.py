"""Spans of time in Chinese: 2026年3月, 去年, 最近三个月的数字写法."""

from __future__ import annotations

import re

from shared.language.base import Bend, DateWords

_YEAR = r"(?P<y>(?:19|20)\d\d)"
_SAID = r"((?:19|20)\d\d) ?年 ?"
_MONTH = r"(?:1[0-2]|0?[1-9]) ?月(?:份| ?\d{1,2} ?[日号])?"
_QUARTER = "第?[1-4一二三四] ?季度?"
_SEASON = "[春夏秋冬][季天]?"
_WEEK = r"第 ?\d{1,2} ?周"
#: Which third of a month is meant, and which of a year.
_THIRD = "的? ?(?P<part>上旬|中旬|下旬|初|底|末)"
_SAME_THIRD = "(?:的? ?(?:上旬|中旬|下旬|初|底|末))"
_YEAR_THIRD = "(?P<part>年初|年中|年底|年末|初|底|末)"
#: A part of a year, without the year.
_PART = rf"(?:{_MONTH}{_SAME_THIRD}?|{_QUARTER}|[上下]半年|{_SEASON}|{_WEEK})"
_JOIN = r"(?: ?(?:至|到|和|与|或|及|以及|、|,|[-–—~]) ?)"
_DAY = r"\d{1,2} ?[日号]"
_MONTH_BEHIND = r"月|[至到和与、\-~](?:十?[一二三四五六七八九十]|\d{1,2})月"
#: Twelve first: the longer name of a number is sought before its parts.
_NUMBERS = ("十二", "十一", "十", "九", "八", "七", "六", "五", "四", "三", "二", "一")
_BENDS: dict[str, Bend] = {
    **dict.fromkeys(("以来", "至今", "起", "自", "自从"), "from"),
    **dict.fromkeys(("以后", "之后", "后", "晚于"), "after"),
    **dict.fromkeys(("以前", "之前", "前", "早于"), "before"),
    "截至": "until",
}

DATES = DateWords(
    spans=(
        re.compile(rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月份?的?第(?P<wm>[1-5一二三四五])个?(?:周|星期)"),
        re.compile(rf"{_YEAR} ?年 ?(?P<s>[春夏秋冬])[季天]?"),
        re.compile(rf"{_YEAR} ?年 ?第 ?(?P<w>\d{{1,2}}) ?周"),
        re.compile(rf"{_YEAR} ?年的? ?(?:第?(?P<q>[1-4一二三四]) ?季度?|(?P<h>[上下])半年)"),
        re.compile(rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月份?{_THIRD}"),
        re.compile(rf"{_YEAR} ?年的? ?{_YEAR_THIRD}"),
        re.compile(r"(?P<rel>本月|这个月|上个?月)的? ?(?P<part>上旬|中旬|下旬|初|底|末)"),
        re.compile(rf"(?P<rel>今年|去年|前年|本年){_YEAR_THIRD}"),
        re.compile(rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月(?: ?(?P<d>\d{{1,2}}) ?[日号])?份?"),
        re.compile(rf"{_YEAR} ?年度?"),
        re.compile(r"(?P<rel>今天|昨天|今年|去年|前年|本年|本月|这个月|上个?月|本周|这周|上周)份?"),
        re.compile(r"(?:最近|过去|近)(?P<n>\d{1,3}) ?个?(?P<unit>天|日|周|月|年)(?:内|里)?"),
    ),
    quarters={"一": 1, "二": 2, "三": 3, "四": 4, "五": 5},
    halves={"上": 1, "下": 2},
    parts={
        **dict.fromkeys(("上旬", "初", "年初"), 1), **dict.fromkeys(("中旬", "年中"), 2),
        **dict.fromkeys(("下旬", "底", "末", "年底", "年末"), 3),
    },
    seasons={"春": 3, "夏": 6, "秋": 9, "冬": 12},
    shared_years=(
        *(
            (re.compile(rf"(?<=[年至到和与、\-~]){number}(?={_MONTH_BEHIND})"), str(12 - place))
            for place, number in enumerate(_NUMBERS)
        ),
        (re.compile(rf"{_SAID}(\d{{1,2}})({_JOIN})(?=\d{{1,2}} ?月)"), r"\1年\2月\3"),
        (re.compile(rf"{_SAID}(第?[1-4一二三四])({_JOIN})(?={_QUARTER})"), r"\1年\2季度\3"),
        (re.compile(rf"{_SAID}({_PART})({_JOIN})(?={_PART})"), r"\1年\2\3\1年"),
        (re.compile(rf"{_SAID}(\d{{1,2}} ?月) ?({_DAY})({_JOIN})(?={_DAY})"), r"\1年\2\3\4\1年\2"),
    ),
    named_year=re.compile(rf"(?P<rel>今年|去年|前年|本年)的?(?={_PART}|十?[一二三四五六七八九十]{{1,2}}月)"),
    year_form="{}年",
    relative={
        "今天": ("day", 0), "昨天": ("day", 1),
        "今年": ("year", 0), "本年": ("year", 0), "去年": ("year", 1), "前年": ("year", 2),
        "本月": ("month", 0), "这个月": ("month", 0), "上月": ("month", 1), "上个月": ("month", 1),
        "本周": ("week", 0), "这周": ("week", 0), "上周": ("week", 1),
    },
    units={"天": 1, "日": 1, "周": 7, "月": 30, "年": 365},
    ahead=re.compile(r"(?P<word>自从?|从|截至|早于|晚于|在)\s*$"),
    behind=("以前", "之前", "前", "以后", "之后", "后", "以来", "至今", "起"),
    bends=_BENDS,
    lead=("介于", "[在于从自]"),
    join=("至", "到", "的?(?:和|与|或者?|及|以及|还有|、|,)"),
    either=("或",),
    reach=("至", "到"),
    join_tail=("[在于]",),
    between=("从", "自", "介于"),
    days=(re.compile(r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})(?!\d)"),),
    headings=(r"\d{4}年\d{1,2}月(?:\d{1,2}日)?",),
)  # fmt: skip
