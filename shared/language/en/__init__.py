"""English. Its tables and rules load at their first use."""

from __future__ import annotations

import re
from functools import cached_property

from shared.language.base import FolderLanguage, NameRules
from shared.language.en.dates import DATES
from shared.language.text import KANA_OR_HANGUL, LATIN_WORD, terms

_ASKS = re.compile(
    r"\s*(?:how|what|why|when|where|who|which|can|could|should|is|are|do|does|please|explain|compare|tell|describe)\s",
    re.IGNORECASE,
)
_VOWEL = re.compile("[aeiouy]")
_MIN_STEM = 3
_ES = ("sses", "xes", "ches", "shes", "zes")
_NOT_PLURAL = ("ss", "us", "is")
_SHORT = r"(?:[A-Z]\.){1,3}|(?:St|Dr|Mr|Mrs|Jr|Sr|Mt|Lt|Gen|Prof)\."
_NAME_WORD = rf"(?:{_SHORT}|[A-Z\u00c0-\u00de][\w&\-]*+(?:['’][A-Za-z]\w++)?+)"
_JOINT = r"(?:of|the|de|del|della|di|da|du|la|le|van|von|der|den|al|el|bin|ibn|y|e|&)"
_RUN = re.compile(rf"{_NAME_WORD}(?: (?:{_JOINT} ){{0,2}}(?:{_NAME_WORD}|\d[\w\-]*+)){{0,7}}+")
_PLAIN_WORDS = (
    "a an the this that these those it its he she they we you i his her their our my your in on at by for from to "
    "of with as and or but if when while after before during since until although though because so there here "
    "who what which where why how one two three four five six seven eight nine ten first second third some many "
    "most other another both all each several such also however then than not no yes is was are were be been "
    "being has have had do does did can could will would may might must shall should over under between among "
    "about into through january february march april june july august september october november december monday "
    "tuesday wednesday thursday friday saturday sunday early late according despite following based born later "
    "today "
)


class English(FolderLanguage):
    """The rules of English."""

    code = "en"
    names = NameRules(plain=frozenset(_PLAIN_WORDS.split()), runs=_RUN)
    dates = DATES

    def reads(self, text: str) -> float:
        """What begins as an English question surely; everything else in Latin letters where no other language does."""
        if KANA_OR_HANGUL.search(text) or not LATIN_WORD.search(text):
            return 0.0
        return 1.0 if _ASKS.match(text) else 0.1

    def term(self, word: str) -> str:
        """Stop words and the possessive off, lightly stemmed."""
        word = word.removesuffix("'s")
        return "" if word in self.words.stop else stem(word)

    def singular(self, word: str) -> str:
        """Only of ASCII words of more than three letters."""
        return singular(word)

    def routing_keys(self, text: str, words: frozenset[str]) -> frozenset[str]:
        """The words, and "'s" for the rules about possessives."""
        return words | {"'s"} if "'" in text else words

    def names_nothing(self, query: str) -> bool:
        """True when all its terms are generic."""
        return all(term in self._generic for term in terms(query))

    @cached_property
    def _generic(self) -> frozenset[str]:
        return frozenset(stem(word) for word in self.words.generic)


def stem(word: str) -> str:
    """A light stem: plural, -ing, -ed, -ly and the last e go. Words not in ASCII come back as they are."""
    if len(word) <= _MIN_STEM or not word.isascii() or not word.isalpha():
        return word
    word = singular(word)
    for suffix in ("ing", "ed", "ly"):
        rest = word.removesuffix(suffix)
        if rest != word and len(rest) >= _MIN_STEM and _VOWEL.search(rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if len(word) > _MIN_STEM and word.endswith("e") else word


def singular(word: str) -> str:
    """A word without its plural ending; short words and words not in ASCII come back as they are."""
    if len(word) <= _MIN_STEM or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > _MIN_STEM + 1:
        return f"{word[:-3]}y"
    if word.endswith(_ES):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(_NOT_PLURAL) else word


LANGUAGE = English()
