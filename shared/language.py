"""Tells which rules can read a question, and carries them over to traditional characters. Never translates."""

from __future__ import annotations

import re
from typing import Literal

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_OTHER = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")  # kana, hangul: not Chinese, whatever Han stands between
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.+#'/-]*")
_ASKS_ENGLISH = re.compile(
    r"\s*(?:how|what|why|when|where|who|which|can|could|should|is|are|do|does|please|explain|compare|tell|describe)\s",
    re.IGNORECASE,
)
_WIDE = {0xFF0C: ",", 0xFF1F: "? ", 0xFF01: "! ", 0xFF1B: "; ", 0xFF1A: ": ", 0xFF08: "(", 0xFF09: ")", 0x3000: " "}
_NARROW = {",": "\uff0c", "?": "\uff1f", "!": "\uff01", ";": "\uff1b", ":": "\uff1a"}
_HAN_BEFORE = re.compile(r"(?<=[\u3400-\u9fff])\s*([,?!;:])\s*|\s*([,;])\s*(?=[\u3400-\u9fff])|(\?)$")
#: Names of products stand in Latin letters in Chinese questions, so few Han characters are enough.
_HAN_SHARE = 0.2

#: Characters of the phrase tables, simplified and traditional, where one stands for the other in both directions.
_SIMPLIFIED = (
    "为么与还区别异对较优设计实现构创执数据库样应该谁几时间问题处决写编议报个选择学习"
    "缩减过经验误项贯骤点们说讲释绍术业务场况响导长帮请给这让级础带来证难类细节则见须"
    "阶并战际预体总环标质觉权规虑错"
)
_TRADITIONAL = (
    "為麼與還區別異對較優設計實現構創執數據庫樣應該誰幾時間問題處決寫編議報個選擇學習"
    "縮減過經驗誤項貫驟點們說講釋紹術業務場況響導長幫請給這讓級礎帶來證難類細節則見須"
    "階並戰際預體總環標質覺權規慮錯"
)
_TO_SIMPLIFIED = str.maketrans(_TRADITIONAL, _SIMPLIFIED)
_TO_TRADITIONAL = str.maketrans(_SIMPLIFIED, _TRADITIONAL)
_ONLY_TRADITIONAL = frozenset(_TRADITIONAL) - frozenset(_SIMPLIFIED)


def narrowed(text: str) -> str:
    """`text` with full-width punctuation in its ASCII form, as the phrase tables have it."""
    return text.translate(_WIDE)


def widened(text: str) -> str:
    """A Chinese question with full-width punctuation, as it is written."""
    return _HAN_BEFORE.sub(lambda found: _NARROW[found[1] or found[2] or found[3]], text)


def language(text: str) -> Literal["en", "zh"] | None:
    """The phrase table for `text`: mixed questions count as Chinese unless they ask in English; None: neither."""
    if _OTHER.search(text):
        return None
    han, words = len(_HAN.findall(text)), len(_WORD.findall(text))
    if han and not _ASKS_ENGLISH.match(text) and han >= _HAN_SHARE * (han + words):
        return "zh"
    return "en" if words else None


def is_traditional(text: str) -> bool:
    """True when `text` is written with traditional characters."""
    return any(char in _ONLY_TRADITIONAL for char in text)


def simplified(text: str) -> str:
    """`text` with the phrase tables' characters in their simplified form; one character for one."""
    return text.translate(_TO_SIMPLIFIED)


def traditional(text: str) -> str:
    """The way back of `simplified`, for subquestions of a question in traditional characters."""
    return text.translate(_TO_TRADITIONAL)
