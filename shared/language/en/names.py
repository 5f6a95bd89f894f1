"""English names: runs of capitalised words, and the words that begin a sentence in capitals and name nothing."""

from __future__ import annotations

import re

from shared.language.base import NameRules

_SHORT = r"(?:[A-Z]\.){1,3}|(?:St|Dr|Mr|Mrs|Jr|Sr|Mt|Lt|Gen|Prof)\."
_WORD = rf"(?:{_SHORT}|[A-Z\u00c0-\u00de][\w&\-]*+(?:['’][A-Za-z]\w++)?+)"
_JOINT = r"(?:of|the|de|del|della|di|da|du|la|le|van|von|der|den|al|el|bin|ibn|y|e|&)"
_RUN = re.compile(rf"{_WORD}(?: (?:{_JOINT} ){{0,2}}(?:{_WORD}|\d[\w\-]*+)){{0,7}}+")
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
NAMES = NameRules(plain=frozenset(_PLAIN_WORDS.split()), runs=_RUN)
