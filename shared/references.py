"""`#1`, `#2` in a subquestion: the answers of earlier ones. Reads and fills them; finds no answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

#: A number sign that opens a word: C#1, &#39; and #1st are none.
_REFERENCE = re.compile(r"(?<![0-9A-Za-z_#&])#([1-9][0-9]?)(?![0-9A-Za-z_])")
_LOOSE = re.compile(r"[ \t]+(?=[,.;:?!)，。；：？！）])|(?<=[ \t])[ \t]+")


def references(text: str) -> tuple[int, ...]:
    """The numbers referred to, each once, in order of their size."""
    return tuple(sorted({int(number) for number in _REFERENCE.findall(text)}))


def filled(text: str, values: Mapping[int, str]) -> str:
    """`text` with each `#n` that `values` knows replaced, in one pass: a `#2` inside a value stays text.

    An empty value takes its reference out, with the white space that would be left over.
    """

    def value(reference: re.Match[str]) -> str:
        return values.get(int(reference[1]), reference[0])

    return _LOOSE.sub("", _REFERENCE.sub(value, text)).strip()


def renumbered(text: str, number: Callable[[int], int | None]) -> str:
    """`text` with every `#n` as `#number(n)`; where `number` gives None, it stays as it is."""

    def again(reference: re.Match[str]) -> str:
        new = number(int(reference[1]))
        return reference[0] if new is None else f"#{new}"

    return _REFERENCE.sub(again, text)
