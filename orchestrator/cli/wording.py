"""Strings for people, safe for a terminal: no escapes, no hidden direction marks. Pure, and quick to import."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.models.route import Route

#: Direction overrides and the byte order mark: they make a line read as other than it is.
_HIDDEN = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def clean(text: str) -> str:
    """`text` without control characters (line breaks and tabs stay), lone surrogates and direction overrides."""
    text = _HIDDEN.sub("", text.replace("\r\n", "\n"))
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cs"})


def one_line(text: str) -> str:
    """`clean`, with white space folded to single blanks."""
    return " ".join(clean(text.replace("\r", " ")).split())


def duration(ms: float) -> str:
    """Milliseconds for people: 12 ms, 1.2 s, 2 min 03 s."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 100_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    return f"{minutes} min {seconds:02d} s"


def counted(number: int, thing: str) -> str:
    """1 hit, 2 hits."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def score(value: float) -> str:
    """A score with four significant digits: rerankers differ too much in scale for fixed places."""
    return f"{value:.4g}"


def read_as(route: Route) -> str:
    """How a job's question was read, by whom, and the way that it took for that."""
    kind = f"{route.type.value}, {route.hops.value}" if route.hops else route.type.value
    said = f"{kind} ({route.intent.value}, {route.confidence:.2f} by {route.by}{', unsure' if route.unsure else ''})"
    return f"{said}: planner {route.planner.value}, strategy {route.strategy}, aggregator {route.aggregator}"
