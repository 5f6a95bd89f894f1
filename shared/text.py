"""Text as terms, shingles and sentences, in English and Chinese alike. Pure and linear in the text's length.

Never used for search itself: the stores search with the sparse encoder's tokens.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from shared.sentences import CJK, is_cjk_text, sentences

__all__ = ["flat", "fold", "is_cjk_text", "sentences", "shingles", "stem", "terms"]

_TOKEN = re.compile(rf"(?P<cjk>[{CJK}]+)|\d+(?:\.\d+)+|[^\W_{CJK}]+(?:'[a-z]+)?")
_UNIT = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_STOP_WORDS = (
    "a about all also am an and any are as at be been being both but by can could did do does done for from get "
    "go got had has have he her his how i if in into is it its me my no not of on or our she should so some such "
    "than that the their them then there these they this those to us was we went were what when where which while "
    "who whom whose why will with would you your"
)
_STOP = frozenset(_STOP_WORDS.split())
#: Function words that are cut out of a CJK run before it is paired, so that a question's 是哪个 makes no terms.
_CJK_STOP = re.compile(
    "(?=[为什怎如哪多是有可应以或我你他它一这那请的了吗呢吧啊与及谁几])(?:"  # most characters fail here, at once
    "为什么|为何|什么|怎么样|怎样|怎么|如何|哪一个|哪个|哪些|哪里|哪儿|哪|多少|是否|是不是|有没有|可以|应该|以及|或者|"
    "我们|你们|他们|它们|一个|一种|这个|那个|这些|那些|请问|(?<!目)的(?!确)|了(?!解)|吗|呢|吧|啊|是|与|及|谁|几)"
)
#: Left over beside names ("RabbitMQ 有什么区别"), these say nothing by themselves.
_CJK_ALONE = frozenset("有在和对为会要能把被从到用做让就都也还不没而其之则且并很更最请")
_VOWEL = re.compile("[aeiouy]")
_MIN_STEM = 3


def fold(text: str) -> str:
    """`text` with compatibility forms unified (NFKC: full width, ligatures) and in lower case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower()


def terms(text: str) -> list[str]:
    """The content terms of `text` in order, with repeats.

    Latin words: accents off, stop words off, lightly stemmed. CJK runs: function words cut out, the rest as
    overlapping pairs of characters; a character that stands alone is a term. Empty for text of stop words only.
    """
    found: list[str] = []
    for match in _TOKEN.finditer(fold(text).replace("’", "'")):
        token = match.group()
        if match.lastgroup == "cjk":
            found.extend(_pairs(token))
        else:
            found.append(_term(token))
    return [term for term in found if term]


def shingles(text: str, n: int) -> frozenset[str]:
    """All runs of `n` units in `text`; a unit is a word or one CJK character, stop words included.

    A text of fewer than `n` units is one shingle; a text without units has none.
    """
    units: list[str] = _UNIT.findall(fold(text))
    if len(units) <= n:
        return frozenset([" ".join(units)] if units else [])
    return frozenset(" ".join(units[i : i + n]) for i in range(len(units) - n + 1))


def flat(text: str) -> str:
    """Words and single CJK characters, folded, with one space around each: what holds a name holds it as a part."""
    return f" {' '.join(_UNIT.findall(fold(text)))} "


def stem(word: str) -> str:
    """A light English stem: plural, -ing, -ed, -ly and the last e go. Other words come back as they are."""
    if len(word) <= _MIN_STEM or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for suffix in ("ing", "ed", "ly"):
        rest = word.removesuffix(suffix)
        if rest != word and len(rest) >= _MIN_STEM and _VOWEL.search(rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if len(word) > _MIN_STEM and word.endswith("e") else word


@lru_cache(maxsize=32_768)
def _term(token: str) -> str:
    """The term of a Latin token, or "" for a stop word. Cached: a few thousand words make up most of any text."""
    word = _bare(token.removesuffix("'s"))
    return "" if word in _STOP else stem(word)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > _MIN_STEM + 1:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _bare(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _pairs(run: str) -> list[str]:
    """Pairs of neighbours between function words; a character alone is a term, and "" (no term) is filtered later."""
    found: list[str] = []
    for part in _CJK_STOP.split(run):
        if len(part) > 1:
            found.extend(part[i : i + 2] for i in range(len(part) - 1))
        elif part not in _CJK_ALONE:
            found.append(part)
    return found
