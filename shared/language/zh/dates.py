"""Spans of time in Chinese: 2026年3月, 去年, 最近三个月的数字写法."""

from __future__ import annotations

import re

from shared.language.base import Bend, DateUnit, DateWords

_YEAR = r"(?P<y>(?:19|20)\d\d)"
_SAID = r"((?:19|20)\d\d) ?年 ?"
_MONTH = r"(?:1[0-2]|0?[1-9]) ?月(?:份| ?\d{1,2} ?[日号])?"
_QUARTER = "第?[1-4一二三四] ?季度?"
_SEASON = "[春夏秋冬][季天]?"
_WEEK = r"第 ?\d{1,2} ?周"
#: Which third of a month is meant, and which of a year.
_THIRD = "的? ?(?P<part>上旬|中旬|下旬|上半月|下半月|前半月|后半月|初|底|末|中(?=以?[前后]|之[前后]|以来))"
_SAME_THIRD = "(?:的? ?(?:[上中下]旬|[上下前后]半月|初|底|末))"
_YEAR_THIRD = "(?P<part>年初|年中|年底|年末|初|底|末)"
_EDGE_OF = r"的?(?P<edge>前|头|最初|最后|后)(?P<c>\d{1,2}) ?个?(?P<cu>天|日|周|星期|月|季度)(?!份|\d)"
#: A part of a year, without the year.
_PART = rf"(?:{_MONTH}{_SAME_THIRD}?|{_QUARTER}|[上下]半年|{_SEASON}|{_WEEK})"
_JOIN = r"(?: ?(?:至|到|和|与|或|及|以及|、|,|[-–—~]) ?)"
_DAY = r"\d{1,2} ?[日号]"
_MONTH_BEHIND = r"月|[至到和与、\-~](?:十?[一二三四五六七八九十]|\d{1,2})月"
#: Twelve first: the longer name of a number is sought before its parts.
_COUNTED = "个?(?:天|日|周|星期|月(?!份)|季度|年)(?!度)"
_COUNT_BEGINS = r"(?<![一二三四五六七八九十百\d第])"
_SAID_MONTH = (
    r"月(?:份|[上中下]旬|[初底末]|[至到、]|以[来前后]|之[前后]|[前后]|\d|的|有|里|[内间]|[一-鿿]{1,4}(?:的|了|$)|$)"
)
_NUMBERS = ("十二", "十一", "十", "九", "八", "七", "六", "五", "四", "三", "二", "一")
_NEXT: tuple[tuple[str, DateUnit], ...] = (("月", "month"), ("季度", "quarter"), ("周", "week"), ("星期", "week"))
_BACK = (("本", 0), ("这", 0), ("这个", 0), ("本个", 0), ("上", 1), ("上个", 1))
_BENDS: dict[str, Bend] = {
    **dict.fromkeys(("不早于", "及以后", "及之后", "(含)以后", "(含)之后", "开始"), "from"),
    **dict.fromkeys(("以来", "至今", "起", "自", "自从"), "from"),
    **dict.fromkeys(("以后", "之后", "后", "晚于"), "after"),
    **dict.fromkeys(("以前", "之前", "前", "早于"), "before"),
    **dict.fromkeys(
        ("截至", "截至到", "截止", "截止到", "直到", "到", "至", "不晚于", "及以前", "及之前", "(含)以前", "(含)之前"),
        "until",
    ),
}

DATES = DateWords(
    spans=(
        re.compile(
            rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月 ?(?P<d>\d{{1,2}}) ?[日号]?"
            r"(?P<wd>(?:那|当|这|所在的?)一?(?:周|个?星期))"
        ),
        re.compile(rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月份?{_EDGE_OF}"),
        re.compile(rf"{_YEAR} ?年{_EDGE_OF}"),
        re.compile(rf"(?P<rel>今年|去年|前年|本年|本月|上个?月){_EDGE_OF}"),
        re.compile(rf"{_YEAR} ?年的?q(?P<q>[1-4])(?![a-z0-9])"),
        re.compile(rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月份?的?(?P<wm>最后)一个?(?:周|星期)"),
        re.compile(
            rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月份?的?"
            r"第 ?(?P<wm>[1-5一二三四五]) ?个?(?:周|星期)(?![一二三四五六日天末])"
        ),
        re.compile(rf"{_YEAR} ?年 ?(?P<s>[春夏秋冬])[季天]?"),
        re.compile(rf"{_YEAR} ?年 ?第 ?(?P<w>\d{{1,2}}) ?周"),
        re.compile(rf"{_YEAR} ?年的? ?(?:第?(?P<q>[1-4一二三四]) ?季度?|(?P<h>[上下])半年)"),
        re.compile(rf"{_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月份?{_THIRD}"),
        re.compile(rf"{_YEAR} ?年的? ?{_YEAR_THIRD}"),
        re.compile(r"(?P<rel>本月|这个月|上个?月)的? ?(?P<part>上旬|中旬|下旬|初|底|末)"),
        re.compile(rf"(?P<rel>今年|去年|前年|本年){_YEAR_THIRD}"),
        re.compile(rf"{_YEAR} ?年的? ?(?P<m>\d{{1,2}}) ?月(?: ?(?P<d>\d{{1,2}}) ?[日号])?份?"),
        re.compile(rf"{_YEAR} ?年度?"),
        re.compile(
            r"(?P<rel>今天|昨天|大?前天|今年|去年|前年|本年|本月|这个?月|上个?月|(?:本|这个?|上个?)季度"
            r"|(?:本|这|上)个?(?:周|星期)(?![一二三四五六日天末]))份?"
        ),
        re.compile(
            r"(?:最近|过去|近)的?(?P<n>\d{1,3}) ?个?(?P<unit>天|日|周|星期|月|季度|年)"
            r"(?:之?内|以来|里|间)?(?![以之]?[前后])"
        ),
        re.compile(
            r"(?:未来|今后|接下来|往后|将来)的?(?P<n>\d{1,3}) ?个?(?P<ahead>天|日|周|星期|月|季度|年)(?:之?内|里|间)?"
        ),
        re.compile(r"(?<![近去\d])(?P<n>\d{1,3}) ?个?(?P<ahead>天|周|星期|月)[之以]?内(?=将?要?会?到期|过期|截止)"),
        re.compile(r"(?<![近去\d年])(?P<n>\d{1,3}) ?个?(?P<older>天|周|星期|月|季度|年)[以之]前(?!的?[那这])"),
        re.compile(r"(?:超过|满)(?P<n>\d{1,3}) ?个?(?P<older>天|周|星期|月|季度|年)以?前?(?=的)"),
        re.compile(r"(?P<rel>明天|后天|明年|下个?(?:月|季度|周|星期)(?![一二三四五六日天末旬]))份?"),
        re.compile(r"(?:20 ?世纪 ?|(?<!\d))(?P<dec>(?:19|20)\d0|[3-9]0) ?年代"),
    ),
    quarters={"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "最后": 5},
    halves={"上": 1, "下": 2},
    parts={
        **dict.fromkeys(("上旬", "初", "年初"), (1, 3)), **dict.fromkeys(("中旬", "年中", "中"), (2, 3)),
        **dict.fromkeys(("下旬", "底", "末", "年底", "年末"), (3, 3)),
        **dict.fromkeys(("上半月", "前半月", "前", "头", "最初"), (1, 2)),
        **dict.fromkeys(("下半月", "后半月", "最后", "后"), (2, 2)),
    },
    points=("初", "年初", "中", "年中", "底", "末", "年底", "年末"),
    seasons={"春": 3, "夏": 6, "秋": 9, "冬": 12},
    shared_years=(
        (
            re.compile(
                r"(?<=[年月日号底末初旬度])[和与跟] ?(?=[\d今去上本前第一二三四五六七八九十][^,。和与跟]{1,14}之间)"
            ),
            "到",
        ),
        (re.compile(r"(?<=[到至])(?:现在|今天|目前)(?:为止)?"), "今"),
        (re.compile(r"到今(?!天|年|日)"), "至今"),
        (re.compile(r"(?<=[月年日号底末初旬度])(?:为止|(?<=[月年日号底末初旬度])止)"), ""),
        (re.compile(r"((?:19|20)\d\d) ?([至到\-–~]) ?(?=(?:19|20)\d\d ?年)"), r"\1年\2"),
        (re.compile(r"(?<=[近去头前后])的?半年"), "6个月"),
        (re.compile("九十年代"), "90年代"), (re.compile("八十年代"), "80年代"), (re.compile("七十年代"), "70年代"),
        *(
            (
                re.compile(
                    rf"(?:(?<=[近去头前后初来])|{_COUNT_BEGINS}(?={number}{_COUNTED}[以之]?[前内]))的?{number}(?={_COUNTED})"
                ),
                str(12 - place),
            )
            for place, number in enumerate((*_NUMBERS[:-2], "[二两]", "一"))
        ),
        *(
            (re.compile(rf"(?<![一二三四五六七八九十个近去头前后]){number}(?={_SAID_MONTH})"), str(12 - place))
            for place, number in enumerate(_NUMBERS)
        ),
        *(
            (re.compile(rf"(?<=[年至到和与、\-~]){number}(?={_MONTH_BEHIND})"), str(12 - place))
            for place, number in enumerate(_NUMBERS)
        ),
        (re.compile(rf"{_SAID}(\d{{1,2}})({_JOIN})(?=\d{{1,2}} ?月)"), r"\1年\2月\3"),
        (re.compile(rf"{_SAID}(第?[1-4一二三四])({_JOIN})(?={_QUARTER})"), r"\1年\2季度\3"),
        (re.compile(rf"{_SAID}({_PART})({_JOIN})(?={_PART})"), r"\1年\2\3\1年"),
        (re.compile(rf"{_SAID}(\d{{1,2}} ?月) ?({_DAY})({_JOIN})(?={_DAY})"), r"\1年\2\3\4\1年\2"),
    ),
    named_year=re.compile(rf"(?P<rel>今年|去年|前年|本年)的?(?={_PART}|q[1-4]|十?[一二三四五六七八九十]{{1,2}}月)"),
    year_form="{}年",
    yearless=re.compile(
        rf"(?<![\d年近去个后前\-~至到和与、今本])(?P<part>(?P<bare>{_MONTH}{_SAME_THIRD}?(?!球|饼|亮|度)"
        r"|第[1-4一二三四] ?季度|[上下]半年|(?<![a-z0-9])(?<![a-z0-9,] )q[1-4](?![a-z0-9])))"
    ),
    yearless_form="{year}年{part}",
    stray_ahead=re.compile(r"(?:非 ?|每个?|每逢|大约|大概|约|近|[前后上下]个?|除夕|半)$"),
    stray_behind=re.compile(
        r"^ ?(?:的?(?:[那当这]|所在)一?[周天]|的?(?:前后|左右|上下)|\((?:不?含|不?包[含括])"
        r"|的?(?:第|前|后|最后|头|上|下)[\d一二三四五六七八九十两几]"
        r"| ?(?:[至到和与、\-~] ?)?[\d一二三四五六七八九十]{1,3} ?个?(?:月|季度|[日号]|周|年)"
        r"|的?(?:春节|国庆|元旦|中秋|五一|周末|暑假|寒假|圣诞|端午|清明|晚上?|早上?|凌晨|上午|下午|中午|工作日)"
        r"|的?(?:周|星期)[一二三四五六日天末]|(?:含|不含|包含|不包含)(?=以|之|前|后|$)"
        r"|的?[上下前后]半|的?同期|的? ?[零\d一二三四五六七八九十]{1,3} ?[点时:])"
    ),
    relative={
        "今天": ("day", 0), "昨天": ("day", 1), "前天": ("day", 2), "大前天": ("day", 3),
        "今年": ("year", 0), "本年": ("year", 0), "去年": ("year", 1), "前年": ("year", 2),
        "本月": ("month", 0), "这个月": ("month", 0), "上月": ("month", 1), "上个月": ("month", 1),
        "这月": ("month", 0),
        "明天": ("day", -1), "后天": ("day", -2), "明年": ("year", -1),
        **{f"{word}{unit}": (kind, -1) for word in ("下", "下个") for unit, kind in _NEXT},
        **{f"{word}{unit}": ("week", back) for word, back in _BACK for unit in ("周", "星期")},
        **{f"{word}季度": ("quarter", back) for word, back in _BACK},
    },
    units={
        "天": "day", "日": "day", "周": "week", "星期": "week", "月": "month", "季度": "quarter", "年": "year",
    },
    ahead=re.compile(r"(?P<word>自从?|从|截[至止]到?|直?到|至|不?早于|不?晚于)\s*$"),
    behind=(
        r"\(含\)[以之][前后]", "及[以之][前后]", "以前", "之前",
        r"前(?![端台缀后面沿往提言半几一二两三四五六七八九十\d])", "以后", "之后",
        "后(?![端台续勤备门果悔面缀半来])", "以来", "至今", "起(?![诉草因源])", "开始",
    ),
    bends=_BENDS,
    verbs=("开始",),
    lead=("介于", "[在于从自]"),
    join=("至", "到", "的?(?:和|与|或者?|及|以及|还有|、|,)"),
    either=("或",),
    reach=("至", "到"),
    join_tail=("[在于]",),
    between=("从", "自", "介于"),
    days=(re.compile(r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})(?!\d)"),),
    headings=(r"\d{4}年\d{1,2}月(?:\d{1,2}日)?",),
)  # fmt: skip
