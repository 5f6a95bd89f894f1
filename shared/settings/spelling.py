"""The nearest spelling of a name that is not known. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches


def nearest(given: str, names: Iterable[str]) -> str:
    """The end of a sentence, like ", did you mean 'deep'?", or nothing."""
    near = get_close_matches(given, list(names), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def known(given: str, names: Collection[str], kind: str) -> str:
    """`given`. Raises: ValueError with the nearest and the known names when it is none of them."""
    if given in names:
        return given
    raise ValueError(f"there is no such {kind}{nearest(given, names)}; {kind}s: {', '.join(names)}")
