"""Spans of time in Chinese: 2026年3月, 去年, 最近三个月的数字写法."""

from __future__ import annotations

import re

from shared.language.base import Bend, DateWords

_YEAR = r"(?P<y>(?:19|20)\d\d)"
_BENDS: dict[str, Bend] = {
    **dict.fromkeys(("以来", "至今", "起", "自", "自从"), "from"),
    **dict.fromkeys(("以后", "之后", "后", "晚于"), "after"),
    **dict.fromkeys(("以前", "之前", "前", "早于"), "before"),
    "截至": "until",
}

DATES = DateWords(
    spans=(
        re.compile(rf"{_YEAR} ?年(?:第?(?P<q>[1-4一二三四]) ?季度?|(?P<h>[上下])半年)"),
        re.compile(rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月(?: ?(?P<d>\d{{1,2}}) ?[日号])?份?"),
        re.compile(rf"{_YEAR} ?年度?"),
        re.compile(r"(?P<rel>今天|昨天|今年|去年|前年|本年|本月|这个月|上个?月|本周|这周|上周)份?"),
        re.compile(r"(?:最近|过去|近)(?P<n>\d{1,3}) ?个?(?P<unit>天|日|周|月|年)(?:内|里)?"),
    ),
    quarters={"一": 1, "二": 2, "三": 3, "四": 4},
    halves={"上": 1, "下": 2},
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
    lead=("[在于从自]",),
    join=("至", "到", "和", "与", "或"),
    reach=("至", "到"),
    between=("从", "自"),
    days=(re.compile(r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})(?!\d)"),),
    headings=(r"\d{4}年\d{1,2}月(?:\d{1,2}日)?",),
)  # fmt: skip
