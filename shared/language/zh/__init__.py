"""Chinese, in simplified and traditional characters. Its tables and rules load at their first use."""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING

from shared.language.base import FolderLanguage, NameRules
from shared.language.text import CJK, HAN, KANA_OR_HANGUL, LATIN_WORD, is_cjk_text
from shared.language.zh.dates import DATES

if TYPE_CHECKING:
    from opencc import OpenCC

#: OpenCC sees nothing else: it takes no lone surrogates, and must not touch what is not Chinese.
_HAN_RUN = re.compile(f"[{HAN}]+")
_HAN = re.compile(f"[{HAN}]")
#: Names of products stand in Latin letters in Chinese questions, so few Han characters are enough.
_HAN_SHARE = 0.2


class Chinese(FolderLanguage):
    """The rules of Chinese."""

    code = "zh"
    names = NameRules(transcribed=re.compile(rf"[{CJK}]{{1,8}}+(?:[·・][{CJK}]{{1,8}}+){{1,4}}"))
    dates = DATES
    #: Terms are pairs of characters, and half of those span two words.
    least_coverage = 0.2
    #: Chinese lookups lose a point of nDCG@10 by it (cmrc2018).
    hops_on_lookups = False

    def reads(self, text: str) -> float:
        """Mixed questions count as Chinese, unless they begin in English."""
        han = len(_HAN.findall(text))
        if not han or KANA_OR_HANGUL.search(text):
            return 0.0
        return 0.9 if han >= _HAN_SHARE * (han + len(LATIN_WORD.findall(text))) else 0.0

    def speaks(self, text: str) -> float:
        """Whatever is mainly written in CJK characters."""
        return 0.9 if is_cjk_text(text) else 0.0

    def normalised(self, text: str) -> str:
        """Simplified characters."""
        return simplified(text)

    def routing_keys(self, text: str, words: frozenset[str]) -> frozenset[str]:
        """The characters, and the words between them."""
        han = _HAN.findall(text)
        return words.union(han) if han else frozenset()

    def names_nothing(self, query: str) -> bool:
        """True when nothing is left without the generic words."""
        return not re.sub(r"[\W_]", "", self._generic.sub("", query))

    @cached_property
    def _generic(self) -> re.Pattern[str]:
        return re.compile("|".join(self.words.generic))


def simplified(text: str) -> str:
    """`text` in simplified characters; other text as it is."""
    return _HAN_RUN.sub(lambda run: _converter("t2s").convert(run[0]), text)


def traditional(text: str) -> str:
    """`text` in the traditional characters of Taiwan, which are Hong Kong's but for a few."""
    return _HAN_RUN.sub(lambda run: _converter("s2tw").convert(run[0]), text)


@cache
def _converter(name: str) -> OpenCC:
    """Loads the dictionaries: 7 MB for t2s, 43 MB for s2tw."""
    from opencc import OpenCC

    return OpenCC(name)


LANGUAGE = Chinese()
