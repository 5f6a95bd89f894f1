"""Tells which field is asked for by where or when: "where were they found", 都在哪里. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, field_concepts, of_one_word
from orchestrator.planning.lists.words import compiled
from shared.language.text import is_han

_WORD = re.compile(r"[a-z]{3,}")
#: What is done at a place, at the end: "come from", "drive to".
_PLACED = r"[a-z]+ (?:(?P<to><way_to>)|(?P<from><way_from>)|at|in)(?=[ ?.!]*$)"


def asked_places(text: str, known: KnownFields) -> Iterator[tuple[int, int, FieldGroup, tuple[int, int] | None]]:
    """Where the words that ask begin and end, the only field that is meant, and where its verb stands, if it does.

    It is the field of places, or of days, of that verb; else the one that the small word at the end points to.
    """
    days = [known.groups[key] for key, _ in known.dated]
    places = [group for group in known.own if any(compiled("<place_field>").search(name) for name in group.first)]
    for lead, fits in (("group_where", places), ("group_when", days)):
        if (asked := compiled(f"<{lead}>").search(text)) is None:
            continue
        words = _WORD.finditer(text, asked.end())
        done = {group.first: word.span() for word in words for group in fits if is_of(word[0], group)}
        if (behind := compiled(_PLACED).search(text, asked.end())) and lead == "group_where":
            named = [one for way in ("to", "from") if behind[way] for one in fits if _is_named(one, way)]
            done = done or {group.first: behind.span() for group in named or fits}
        done = done or {group.first: asked.span() for group in fits if is_han(asked[0][0])}
        for keys, rest in done.items() if len(done) == 1 else ():
            yield *asked.span(), known.groups[keys[0]], None if rest == asked.span() else rest


def _is_named(group: FieldGroup, way: str) -> bool:
    return any(compiled(f"(?:<named_{way}!>)").search(name) for name in group.first)


def is_of(verb: str, group: FieldGroup) -> bool:
    """True for a verb of the field's name, or of a name that means the same."""
    same = (name for names in field_concepts().values() if {*group.first} & {*names[:1]} for name in names)
    return any(of_one_word(verb, name) for name in (*group.first, *same))
