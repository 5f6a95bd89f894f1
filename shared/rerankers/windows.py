"""Long documents as overlapping windows, so that a reranker reads all of them. Pure; never drops a character."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate

from shared.language.text import CJK
from shared.models import Hit

OVERLAP = 0.1  # of a window: a sentence on the border is whole in one of the two
_LEAD_SHARE = 4
_NARROWEST = 60
_ENDS = re.compile(r"\n+|(?<=[.!?;])\s+|[。！？；]+\s*")
_SPACES = re.compile(r"\s+")
_WIDE = re.compile(f"[{CJK}]")


def document_windows(hit: Hit, most: int) -> list[str]:
    """The chunk as texts of at most `most` characters (a CJK character counts as two), at least one.

    Each window begins with title and heading; where these alone take more than a quarter, they are cut like the rest.
    """
    whole = hit.full_text
    if width(whole) <= most:
        return [whole]
    lead = whole.removesuffix(hit.text)
    if width(lead) * _LEAD_SHARE > most:
        return windows(whole, most)
    return [lead + piece for piece in windows(hit.text, most - width(lead))]


def windows(text: str, most: int) -> list[str]:
    """`text` in overlapping pieces of at most `most` characters, cut at ends of sentences or lines where there are."""
    return [text[start:end] for start, end in spans(text, most)]


def fitting(text: str, count: Callable[[str], int], room: int) -> list[str]:
    """`text` in overlapping pieces of at most `room` tokens, as `count` counts them; whole if it fits.

    Pieces of a few words stay as they are, however many tokens they have.
    """
    tokens, wide = count(text), width(text)
    if tokens <= room or wide <= _NARROWEST:
        return [text]
    most = max(_NARROWEST, int(wide * 0.9 * room / tokens))
    return [fine for piece in windows(text, min(most, wide - 1)) for fine in fitting(piece, count, room)]


def spans(text: str, most: int) -> list[tuple[int, int]]:
    """Start and end of each window: they cover the whole text, and each starts before the end of the one before."""
    widths = [0, *accumulate(1 + bool(_WIDE.match(char)) for char in text)]
    ends = [match.end() for match in _ENDS.finditer(text)]
    spaces = [match.end() for match in _SPACES.finditer(text)]
    found: list[tuple[int, int]] = []
    start = 0
    while widths[-1] - widths[start] > most:
        limit = max(start + 1, bisect_right(widths, widths[start] + most) - 1)
        end = _last(ends, (start + limit) // 2, limit) or _last(spaces, (start + limit) // 2, limit) or limit
        found.append((start, end))
        back = max(start + 1, bisect_left(widths, widths[end] - int(most * OVERLAP)))
        start = _first(ends, back, end) or _first(spaces, back, end) or back
    found.append((start, len(text)))
    return found


def width(text: str) -> int:
    """Characters of `text`, CJK ones counted twice: they hold about twice as many tokens."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))


def _last(offsets: list[int], after: int, until: int) -> int | None:
    """The last offset in (after, until]."""
    at = bisect_right(offsets, until)
    return offsets[at - 1] if at and offsets[at - 1] > after else None


def _first(offsets: list[int], start: int, before: int) -> int | None:
    """The first offset in [start, before)."""
    at = bisect_left(offsets, start)
    return offsets[at] if at < len(offsets) and offsets[at] < before else None
