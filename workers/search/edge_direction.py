"""In which direction along calls and links a question looks: "what does X call", "what calls X". Pure."""

from __future__ import annotations

import re
from typing import Literal, get_args

from shared.language import derived, languages

Direction = Literal["out", "back"]

#: As much of a question as is read.
_READ = 500
#: How an edge is told that was followed against its direction.
_TURNED = frozenset({"called by", "linked by", "mentioned by"})


def asked_direction(question: str) -> Direction | None:
    """`out`: what something leads to is asked for; `back`: what leads to it; None where the words do not tell."""
    read = question[:_READ]
    out, back = (_asked(direction).search(read) is not None for direction in get_args(Direction))
    if out == back:
        return None
    return "out" if out else "back"


def has_direction(how: str, direction: Direction) -> bool:
    """Whether an edge, told as in `Via.how`, has that direction."""
    return (how in _TURNED) == (direction == "back")


@derived
def _asked(direction: Direction) -> re.Pattern[str]:
    patterns = (pattern for language in languages() for pattern in language.words.edges.get(direction, ()))
    return re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)
