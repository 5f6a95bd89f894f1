"""Names in a passage: what a next hop can be searched by. Pure, no model, linear in the text's length.

English: the title, quoted titles, runs of capitalised words ("University of Oxford"). Chinese: the title and what
stands in book-title marks or quotation marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.sentences import CJK
from shared.text import fold

#: Longest name in characters, most names of a passage, and how much of a passage is read.
MAX_NAME = 80
MAX_NAMES = 24
MAX_TEXT = 4000

_SHORT = r"(?:[A-Z]\.){1,3}|(?:St|Dr|Mr|Mrs|Jr|Sr|Mt|Lt|Gen|Prof)\."
_WORD = rf"(?:{_SHORT}|[A-Z\u00c0-\u00de][\w&\-]*+(?:['’][A-Za-z]\w++)?+)"
_JOINT = r"(?:of|the|de|del|della|di|da|du|la|le|van|von|der|den|al|el|bin|ibn|y|e|&)"
_RUN = re.compile(rf"{_WORD}(?: (?:{_JOINT} ){{0,2}}(?:{_WORD}|\d[\w\-]*+)){{0,7}}+")
_MARKED = re.compile(r"《([^《》\n]{1,80}+)》|「([^「」\n]{2,40}+)」|“([^“”\n]{2,80}+)”|\"([^\"\n]{2,80}+)\"")
_BRACKET = re.compile(r"\s*[(（][^()（）]{1,60}+[)）]\s*$")
_START = re.compile(r"(?:^|[.!?:;\n]\s*|[\"“(]\s*)$")
_CLEAN = re.compile(r"^[\s\"'“”.,:;()\-]+|(?:['’]s)?[\s\"'“”.,:;()\-]*$")
#: Words that begin sentences in capitals and name nothing alone.
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
_PLAIN = frozenset(_PLAIN_WORDS.split())


def names_of(title: str, text: str) -> tuple[str, ...]:
    """Distinct names in order: the title (without its bracket) first, then as they stand in the text.

    At most MAX_NAMES of at most MAX_NAME characters each; a name that differs only in case from an earlier one is left
    out.
    """
    found: dict[str, str] = {}
    for name in _all(title, text[:MAX_TEXT]):
        tidy = _CLEAN.sub("", name)
        if 1 < len(tidy) <= MAX_NAME:
            found.setdefault(fold(tidy), tidy)
        if len(found) >= MAX_NAMES:
            break
    return tuple(found.values())


def bare(title: str) -> str:
    """A title without the bracket that tells it from its namesakes: "Log (mathematics)" is "Log"."""
    return _BRACKET.sub("", title) or title


def _all(title: str, text: str) -> Iterator[str]:
    if title:
        yield bare(title)
    marked = [(found.start(), next(part for part in found.groups() if part)) for found in _MARKED.finditer(text)]
    runs = [(found.start(), found.group()) for found in _RUN.finditer(text) if _is_name(found, text)]
    for _, name in sorted([*marked, *runs]):
        words = name.split()
        while words and words[0].lower() in _PLAIN and len(words) > 1:
            words = words[1:]
        yield " ".join(words) if name.isascii() or not re.search(f"[{CJK}]", name) else name


def _is_name(found: re.Match[str], text: str) -> bool:
    """Not one plain word: "The", or a word in capitals only because a sentence begins with it."""
    words = [word for word in found.group().split() if word.lower().strip(".,") not in _PLAIN]
    if not words:
        return False
    if len(words) > 1 or not _START.search(text[max(0, found.start() - 3) : found.start()]):
        return True
    lower = words[0].lower()
    return f" {lower} " not in text and len(lower) > 2
