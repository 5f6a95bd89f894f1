"""The phrases of all languages' lists.toml, compiled once: a question may mix languages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shared.language import derived, languages


@derived
def phrases(name: str) -> str:
    """The alternatives of one list, as the inside of a group; those in Latin letters stand between word boundaries."""
    return "|".join(_bounded(phrase) for phrase in sorted(listed(name), key=len, reverse=True)) or "(?!)"


@derived
def pattern(name: str) -> re.Pattern[str]:
    """Any phrase of one list."""
    return re.compile(f"(?:{phrases(name)})")


@derived
def listed(name: str) -> tuple[str, ...]:
    """The phrases of one list as they are written, by language."""
    return tuple(phrase for language in languages() for phrase in language.lists.phrases.get(name, ()))


@derived
def either(name: str) -> str:
    """The alternatives of one list as they are written, as the inside of a group."""
    return "|".join(listed(name)) or "(?!)"


@derived
def kind_aliases() -> Mapping[str, Sequence[str]]:
    """Kind -> its other names."""
    found: dict[str, tuple[str, ...]] = {}
    for language in languages():
        for kind, names in language.lists.kinds.items():
            found[kind] = (*found.get(kind, ()), *names)
    return found


def _bounded(phrase: str) -> str:
    first = phrase.removeprefix("(?:")[0]
    head = r"(?<![a-z0-9])" if first.isascii() and first.isalpha() else ""
    tail = r"(?![a-z0-9])" if phrase[-1].isascii() and phrase[-1] not in "$:=+/b " else ""
    return f"{head}(?:{phrase}){tail}"
