"""The values of a corpus by the spellings under which a question may name them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from orchestrator.enumeration.words import kind_aliases
from shared.language.text import is_han, key, plain

#: Words of the longest value that is looked for.
_MOST_WORDS = 6
_LEAST_CHARS = 2
_WORD = re.compile(r"[^\s,;:!?，。；：！？、()\x1f]+")
#: A name is spelt in at most so many times its own characters, and so many more: "redis - streams".
_ROOMY, _MORE = 2, 16


class KnownName(NamedTuple):
    """A name in a text: the values that it stands for, and where it ends."""

    values: tuple[str, ...]
    end: int


class Names:
    """Looks for values of one field at a place of a folded text; the longest wins."""

    def __init__(self, values: Iterable[str], aliases: Mapping[str, Sequence[str]] | None = None) -> None:
        self._values: dict[str, tuple[str, ...]] = {}
        self.known = tuple(values)
        for value in self.known:
            for name in (value, *(aliases or {}).get(value, ())):
                spelt = key(name)
                if len(spelt) >= _LEAST_CHARS:
                    self._values[spelt] = (*self._values.get(spelt, ()), value)
        self._reach = _ROOMY * max(map(len, self._values), default=0) + _MORE
        self._han = sorted((name for name in self._values if is_han(name)), key=len, reverse=True)

    def at(self, text: str, start: int) -> KnownName | None:
        """The longest name that begins at `start`."""
        latin, han = self._words_at(text, start), self._han_at(text, start)
        return max((found for found in (latin, han) if found), key=lambda found: found.end, default=None)

    def _words_at(self, text: str, start: int) -> KnownName | None:
        ends: list[int] = []
        place, last = start, min(len(text), start + self._reach)  # else every place of a long word reads it to its end
        while len(ends) < _MOST_WORDS and (word := _WORD.match(text, place, last)):
            ends.append(word.end())
            place = word.end()
            while place < last and text[place] == " ":
                place += 1
        for end in reversed(ends):
            for stop in dict.fromkeys((end, end - 1 if text[end - 1] in ".'" else end, _latin_end(text, start, end))):
                if stop > start and (values := self._values.get(key(text[start:stop]))):
                    return KnownName(values, stop)
        return None

    def _han_at(self, text: str, start: int) -> KnownName | None:
        name = next((name for name in self._han if text.startswith(name, start)), None)
        return KnownName(self._values[name], start + len(name)) if name else None

    def of(self, name: str) -> tuple[str, ...]:
        """The values that a whole name stands for; none when it is unknown."""
        return self._values.get(key(name), ())

    def near(self, name: str) -> str:
        """Known values that look like an unknown one, for people."""
        by_name = {plain(value): value for value in self.known}
        close = get_close_matches(plain(name), by_name, n=3)
        return ", ".join(by_name[value] for value in close)


def kind_names(kinds: Iterable[str]) -> Names:
    """Kinds with their names in all languages."""
    return Names(kinds, kind_aliases())


def _latin_end(text: str, start: int, end: int) -> int:
    """Where Han characters begin in a word: "redis的" names redis."""
    return next((at for at in range(start, end) if is_han(text[at])), end)
