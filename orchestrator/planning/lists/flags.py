"""Reads fields that are yes or no: "renewed automatically" of a field "automatic renewal". Pure."""

from __future__ import annotations

import re

from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, Meant
from orchestrator.planning.lists.fields import FieldTaker
from orchestrator.planning.lists.markers import is_negated
from orchestrator.planning.lists.words import compiled, listed
from shared.language.text import value_key

_WORD = re.compile(r"[a-z][a-z\-]*")
#: Two words are forms of one where so many letters at their beginning are the same.
_SAME = 5


def take_flags(taker: FieldTaker) -> None:
    """Take the words of such a field's name out, in any order and form: its value is yes, where denied it is not."""
    for group, yes in _flags(taker.known):
        names = [words for name in group.first if len(words := _WORD.findall(name)) > 1]
        place = next((place for words in names if (place := _place_of(words, taker.text))), None)
        if place and not taker.in_words(place[0]):
            said = compiled(r"(?:<field_said>|<field_lead>)\s*$").search(taker.text[: place[0]])
            meant = Meant(group.first, yes)
            taker.told([taker.text[place[0] : place[1]]], meant)
            begun = said.start() if said and not is_negated(taker.sentence, place[0]) else place[0]
            taker.append(meant, begun, place[1], negated=False)


def _flags(known: KnownFields) -> list[tuple[FieldGroup, tuple[str, ...]]]:
    """The fields all of whose values are yes or no, with those that are yes."""
    yes, no = (frozenset(map(value_key, listed(name))) for name in ("flag_yes", "flag_no"))
    found = {}
    for group in known.groups.values():
        values = {value: value_key(value) for key in group.first for value in known.values(key)}
        affirmed = tuple(value for value, key in values.items() if key in yes)
        if affirmed and not group.instead and {*values.values()} <= yes | no:
            found[group.first] = (group, affirmed)
    return list(found.values())


def _place_of(name: list[str], text: str) -> tuple[int, int] | None:
    """Where words stand beside each other that are those of a name, each in any form."""
    words = list(_WORD.finditer(text))
    for first in range(len(words) - len(name) + 1):
        here = words[first : first + len(name)]
        left = [*name]
        for word in here:
            left = [each for each in left if not _alike(word[0], each)]
        if not left and all(any(_alike(word[0], each) for each in name) for word in here):
            return here[0].start(), here[-1].end()
    return None


def _alike(word: str, other: str) -> bool:
    """True for two forms of one word: "renewed" and "renewal"."""
    return word == other or (min(len(word), len(other)) >= _SAME and word[:_SAME] == other[:_SAME])
