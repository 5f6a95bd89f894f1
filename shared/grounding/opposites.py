"""Words of which two cannot both be true of one thing: up and down, before and after, all and some. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left

from shared.grounding.texts import TokenText, stem_of
from shared.language import derived, languages

_TWO = 2
#: Group -> cells.
Groups = dict[int, set[int]]


def opposed_words(text: TokenText) -> list[tuple[str, tuple[int, int], Groups]]:
    """The words of the tables in a text, each with the range of its tokens and its cells by group."""
    starts, cells = _by_start(), opposed_table()[1]
    found = []
    for place, token in enumerate(text.tokens):
        word = text.low[token.start : token.end]
        if not word.isascii():
            ours = starts.get(word[0])
            word = next((one for one in ours if text.low.startswith(one, token.start)), "") if ours else ""
        if word in cells:
            last = bisect_left(text.tokens, token.start + len(word), lo=place, key=lambda one: one.start)
            groups: Groups = {}
            for group, cell in cells[word]:
                groups.setdefault(group, set()).add(cell)
            found.append((word, (place, last), groups))
    return found


@derived
def _by_start() -> dict[str, list[str]]:
    """First character -> the words of scripts without spaces that begin with it, the longest first."""
    found: dict[str, list[str]] = {}
    for word in sorted(opposed_table()[1], key=len, reverse=True):
        if not word.isascii():
            found.setdefault(word[0], []).append(word)
    return found


def opposite(one: str, other: str) -> bool:
    """Whether two words, or stems, are opposites."""
    ours, theirs = (_stem_cells().get(word, {}) for word in (one, other))
    return any(group in theirs and cells.isdisjoint(theirs[group]) for group, cells in ours.items())


def either(one: str, other: str) -> bool:
    """Whether of two words what is not the one is the other: open and closed, not red and green."""
    ours, theirs = (_stem_cells().get(word, {}) for word in (one, other))
    return any(
        group in _pairs() and group in theirs and cells.isdisjoint(theirs[group]) for group, cells in ours.items()
    )


@derived
def _pairs() -> frozenset[int]:
    groups = (group for language in languages() for group in language.claims.opposed)
    return frozenset(number for number, rows in enumerate(groups) if len(rows) == _TWO)


@derived
def opposed_table() -> tuple[re.Pattern[str], dict[str, list[tuple[int, int]]]]:
    """A pattern of all words, and the (group, cell) of each."""
    cells: dict[str, list[tuple[int, int]]] = {}
    groups = [group for language in languages() for group in language.claims.opposed]
    for group, rows in enumerate(groups):
        for cell, words in enumerate(rows):
            for word in words:
                cells.setdefault(word, []).append((group, cell))
    ordered = sorted(cells, key=len, reverse=True)
    return re.compile(
        "|".join(rf"(?<!\bno )\b{re.escape(w)}\b" if w.isascii() else re.escape(w) for w in ordered)
    ), cells


@derived
def _stem_cells() -> dict[str, Groups]:
    """Stem or CJK word -> its cells by group."""
    found: dict[str, Groups] = {}
    for word, places in opposed_table()[1].items():
        for group, cell in places:
            for key in {word, stem_of(word)}:
                found.setdefault(key, {}).setdefault(group, set()).add(cell)
    return found
