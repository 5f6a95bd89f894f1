"""Which names of fields mean the same: "Cook" and "Cooked by", "Contact" and "Contact person", 测量 and 测量员."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.language import derived, languages
from shared.language.text import value_key


def field_stem(key: str) -> str:
    """The same for the forms of one name: the verb in it, without a word that only says what its value is. By key."""
    for pattern in _forms():
        if found := pattern.fullmatch(key):
            return found[1]
    return key


def other_forms(key: str) -> Iterator[str]:
    """The names that somebody may call a field by whose own name is made of a verb: "surveyor" for "surveyed by"."""
    stem = field_stem(key)
    if stem != key:
        for language in languages():
            for role in language.lists.phrases.get("name_role", ()):
                yield role.format(stem)


@derived
def synonyms() -> dict[str, frozenset[str]]:
    """Key of a name in the languages' tables -> the keys of all names that mean the same."""
    rows: dict[tuple[str, int], set[str]] = {}
    for language in languages():
        for concept, named in language.lists.fields.items():
            for number, names in enumerate(named):
                rows.setdefault((concept, number), set()).update(map(value_key, names))
    found: dict[str, frozenset[str]] = {}
    for (_, number), same in rows.items():
        if number == 0:
            found |= {name: frozenset(same) for name in same if name not in found}
    return found


@derived
def _forms() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(pattern) for language in languages() for pattern in language.lists.phrases.get("name_form", ())
    )
