"""Finds the names of other pages in prose without markup: an edge that nobody drew. Pure, one pass over a text.

Precision goes before coverage: a wrong edge costs a place among the neighbours of every search that walks it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, MatchKind

from shared.language.text import CJK, terms
from shared.page_keys import title_key

#: Letters of the shortest name of one word, characters of the shortest Chinese name; and of those in quotation marks.
MIN_WORD, MIN_CJK = 5, 3
MIN_QUOTED_WORD, MIN_QUOTED_CJK = 3, 2
_MAX_NAME, _MAX_TEXT = 120, 40_000
_BRACKET = re.compile(r"[ ]?\(([^()]{1,60}+)\)$")
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(f"[{CJK}]")
_BESIDE_CJK = re.compile(f"(?<=[{CJK}]) | (?=[{CJK}])")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
#: Behind one of these, a capital says nothing.
_STARTS = ".!?:;。！？：；\n*#>|-•·\"“”'‘「『《"
_QUOTES = frozenset({'""', "“”", "''", "‘’", "「」", "『』", "《》", "〈〉", "**", "__", "``"})
_PATHLIKE = "/\\@.=&"
_PREVIOUS = re.compile(r"([^\W_]+) $")
_NEXT = re.compile(r" ([^\W\d_])")


class Name(NamedTuple):
    """A way to write a page's title: `shown` with its capitals, `full` False without its bracket.

    `hint`: the terms of that bracket. Without it, a name means the page only beside one of them: "Chicago (film)" is
    not meant where no film is spoken of (measured: 4 in 10 right without hints).
    """

    shown: str
    full: bool = True
    hint: frozenset[str] = frozenset()


class Target(NamedTuple):
    """What a name leads to: the page's key and id."""

    name: Name
    key: str
    doc_id: str


@lru_cache(maxsize=50_000)
def names_of(title: str) -> tuple[tuple[str, Name], ...]:
    """What may be looked for of a title, each with its `phrase`.

    The whole title and, of "Log (mathematics)", what stands before the bracket. None of a title that is too short or
    too plain to mean this page.
    """
    whole = _prose(title) if len(title) <= _MAX_NAME else ""
    names = [Name(whole)]
    if bracket := _BRACKET.search(whole):
        names.append(Name(whole[: bracket.start()], False, frozenset(terms(bracket[1]))))
    return tuple((phrase(name.shown), name) for name in names if _telling(name.shown, MIN_QUOTED_WORD, MIN_QUOTED_CJK))


def phrase(shown: str) -> str:
    """A name or text in lower case, character by character, so that places in it are places in the original."""
    lower = shown.casefold()
    if len(lower) == len(shown):
        return lower
    return "".join(low if len(low := char.casefold()) == 1 else char for char in shown)


class Scanner:
    """All names at once, by their `phrase`."""

    def __init__(self, names: Mapping[str, Target]) -> None:
        self._phrases = list(names)
        self._targets = list(names.values())
        self._automaton = AhoCorasick(self._phrases, matchkind=MatchKind.Standard) if names else None

    def found(self, text: str, doc_id: str) -> set[str]:
        """The phrases in a text of the document `doc_id` that name another page, none inside a longer one."""
        if self._automaton is None:
            return set()
        shown = _prose(text[:_MAX_TEXT])
        spans = [
            (start, end, number)
            for number, start, end in self._automaton.find_matches_as_indexes(phrase(shown), overlapping=True)
            if _names(self._targets[number].name.shown, shown, start, end)
        ]
        numbers = {number for number in _outermost(spans) if self._targets[number].doc_id != doc_id}
        hinted = any(not self._targets[number].name.full for number in numbers)
        said = frozenset(terms(shown)) if hinted else frozenset()
        return {self._phrases[number] for number in numbers if _meant(self._targets[number].name, said)}


def _meant(name: Name, said: frozenset[str]) -> bool:
    return name.full or not name.hint.isdisjoint(said)


def key_of(title: str) -> str:
    """The key that a mention of this page holds."""
    return title_key(title)


def _prose(text: str) -> str:
    """One space or one line end between words, none beside Chinese characters; compatibility forms unified."""
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return _BESIDE_CJK.sub("", "\n".join(" ".join(part.split()) for part in _PARAGRAPH.split(text)))


def _telling(shown: str, min_word: int = MIN_WORD, min_cjk: int = MIN_CJK) -> bool:
    """True for two words with something to say, one long word, or three Chinese characters."""
    if _CJK.search(shown):
        return sum(2 if _CJK.match(char) else 1 for char in shown) >= 2 * min_cjk
    words = _WORD.findall(shown)
    if len(words) > 1:
        return any(char.isalpha() for char in shown) and bool(terms(shown)) and len(shown) > min_word
    return len(words) == 1 and sum(char.isalpha() for char in shown) >= min_word


def _names(name: str, text: str, start: int, end: int) -> bool:
    """True when the name stands there as a name: at word bounds, with its capitals, in no longer name."""
    if not _bounded(text, start, end):
        return False
    capitals = _capitals(name, text[start:end])
    if text[start - 1 : start] + text[end : end + 1] in _QUOTES:
        return capitals
    if _CJK.search(name) or not _telling(name):
        return _telling(name)
    if len(_WORD.findall(name)) == 1:
        return capitals and text[start].isupper() and not _starts(text, start) and _alone(text, start, end)
    # "Query optimization" is no name but a matter: it may stand in small letters.
    matter = len(terms(name)) > 1 and not any(char.isupper() for char in name[1:])
    return matter or (capitals and not _goes_on(text, end))


def _capitals(name: str, here: str) -> bool:
    return all(found.isupper() for wanted, found in zip(name, here, strict=True) if wanted.isupper())


def _bounded(text: str, start: int, end: int) -> bool:
    """True when no word runs on over either end; Chinese has no bounds."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if _is_letter(text[start]) and (_is_letter(before) or (before and before in _PATHLIKE)):
        return False
    return not (_is_letter(text[end - 1]) and _is_letter(after))


def _is_letter(char: str) -> bool:
    return bool(char) and (char.isalnum() or char == "_") and not _CJK.match(char)


def _starts(text: str, start: int) -> bool:
    """True at the start of a sentence, a line or a quotation, where any word may have a capital."""
    before = text[max(0, start - 3) : start].rstrip(" ")
    return not before or before[-1] in _STARTS


def _alone(text: str, start: int, end: int) -> bool:
    """True when no neighbour makes it part of a longer name: "Washington" is no "George Washington"."""
    before = _PREVIOUS.search(text[max(0, start - 40) : start])
    if before and before[1][0].isupper():
        first = start - 1 - len(before[1])
        if terms(before[1]) or not _starts(text, first):
            return False
    return not _goes_on(text, end)


def _goes_on(text: str, end: int) -> bool:
    found = _NEXT.match(text, end)
    return bool(found and found[1].isupper())


def _outermost(spans: Iterable[tuple[int, int, int]]) -> list[int]:
    """The numbers of spans that lie within no other."""
    kept, reach = [], -1
    for _, end, number in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > reach:
            kept.append(number)
            reach = end
    return kept
