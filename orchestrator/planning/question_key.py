"""When two questions are one: case, width, punctuation and spacing do not count. Compares spelling, never meaning."""

from __future__ import annotations

import unicodedata

#: Punctuation that tells names apart: C# is not C, R&D is not RD.
_TELLING = frozenset("#&@%*")


def folded(question: str) -> str:
    """The key under which two questions are the same search (NFKC, case folded, no punctuation, no space).

    Symbols such as + stay, and so does a full stop between digits: C++ is not C, 1.2 is not 12. A question of nothing
    but punctuation keeps it.
    """
    text = unicodedata.normalize("NFKC", question).casefold()
    kept = [c for place, c in enumerate(text) if _counts(text, place)]
    return "".join(kept) or "".join(text.split())


def _counts(text: str, place: int) -> bool:
    char = text[place]
    if char == ".":
        return text[place - 1 : place].isdigit() and text[place + 1 : place + 2].isdigit()
    return char in _TELLING or unicodedata.category(char)[0] not in "PZC"
