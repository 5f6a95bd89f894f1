"""Checks the citations of a written summary against the sources it was given. Pure; the rest of the text stays."""

from __future__ import annotations

import re

from shared.models.base import Model

_LIST = r"\^?\d{1,9}(?:\s?(?:[,，、;；\-–]|and|和)\s?\^?\d{1,9})*"
_CITATION = re.compile(rf"[ \t]{{0,3}}(?:\[({_LIST})\]|【({_LIST})】|［({_LIST})］)")
_PART = re.compile(r"(\d{1,9})(?:\s?[\-–]\s?(\d{1,9}))?")
_CODE = re.compile(r"(```[\s\S]*?(?:```|\Z)|`[^`\n]*`)")
_LONGEST_RANGE = 50


class Checked(Model):
    """`text` with valid citations only, each as [n]; `cited` in order of appearance; `removed` counts the others."""

    text: str
    cited: tuple[int, ...] = ()
    removed: int = 0


def check_citations(text: str, sources: int) -> Checked:
    """Keep the citations of 1..`sources`, remove and count the others.

    Lists, ranges, footnote marks and wide brackets ([1, 3], [2-4], [^1], 【1】) become [1][3]. What stands in code
    is code: `rows[0]` cites nothing.
    """
    cited: dict[int, None] = {}
    removed = 0

    def rewrite(match: re.Match[str]) -> str:
        nonlocal removed
        numbers = _numbers(match[1] or match[2] or match[3], sources)
        valid = [number for number in dict.fromkeys(numbers) if 1 <= number <= sources]
        removed += len(set(numbers)) - len(valid)
        cited.update(dict.fromkeys(valid))
        return (" " if valid and match[0][0] in " \t" else "") + "".join(f"[{number}]" for number in valid)

    parts = _CODE.split(text)
    parts[::2] = [_CITATION.sub(rewrite, part) for part in parts[::2]]
    return Checked(text="".join(parts), cited=tuple(cited), removed=removed)


def _numbers(inside: str, sources: int) -> list[int]:
    """The numbers of one bracket; a range is written out, and one that is no range counts by its two ends."""
    numbers: list[int] = []
    for part in _PART.finditer(inside):
        first, last = int(part[1]), int(part[2] or part[1])
        whole = first <= last <= sources + _LONGEST_RANGE and last - first <= _LONGEST_RANGE
        numbers.extend(range(first, last + 1) if whole else (first, last))
    return numbers
