"""Reads fields that are yes or no: "renewed automatically" of "automatic renewal", 没有展出 of 是否展出. Pure."""

from __future__ import annotations

import re

from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, Meant
from orchestrator.planning.lists.fields import FieldTaker
from orchestrator.planning.lists.markers import is_negated, negation_start
from orchestrator.planning.lists.words import compiled
from shared.language.text import is_han, value_key

_WORD = re.compile(r"[a-z][a-z\-]*")
#: Two words are forms of one where so many letters at their beginning are the same.
_SAME = 5
_SAID = r"(?:<field_said>|<field_lead>|<flag_verb>)(?:\s+(?:<article_words>))?\s*$"
_LEAST_HAN = 2


def take_flags(taker: FieldTaker) -> None:
    """Take the words of such a field's name out, in any order and form: its value is yes, where denied it is not."""
    for group, yes, no in _flags(taker.known):
        found = next((place for name in group.first if (place := _place(name, taker))), None)
        if found is None or taker.in_words(found[0]):
            continue
        start, end, denied = found
        said = compiled(_SAID).search(taker.text[:start])
        meant = Meant(group.first, no if denied and no else yes)
        taker.told([taker.text[start:end]], meant)
        begun = said.start() if said and not is_negated(taker.sentence, start) else start
        begun = negation_start(taker.sentence, begun) if denied and no else begun
        taker.append(meant, begun, end, negated=denied and not no)


def _flags(known: KnownFields) -> list[tuple[FieldGroup, tuple[str, ...], tuple[str, ...]]]:
    """The fields all of whose values are yes or no, with those that are yes and those that are no."""
    found = {group.first: (group, *known.flag(group)) for group in known.groups.values()}
    return [(group, yes, no) for group, yes, no in found.values() if yes]


def _place(name: str, taker: FieldTaker) -> tuple[int, int, bool] | None:
    """Where the words of a name stand, and whether they are denied in themselves: "uncertified", 未展出."""
    if is_han(name):
        return _han_place(name, taker.text)
    words = [word for word in _WORD.findall(name) if not compiled("<flag_lead>").fullmatch(word)]
    if len(words) > 1:
        return _place_of(words, taker.text)
    for found in _WORD.finditer(taker.text) if words else ():
        if taker.known.anywhere.at(taker.text, found.start()):
            continue
        denied = compiled("(?:<flag_un!>)").match(found[0])
        if _is_form(found[0], words[0]):
            return *found.span(), False
        if denied and _is_form(found[0][denied.end() :].lstrip("-"), words[0]):
            return *found.span(), True
    return None


def _is_form(word: str, name: str) -> bool:
    """True for the one word of a name: as it is written, or another form of it where it is long."""
    return value_key(word) == value_key(name) or (len(name) > _SAME and _alike(word, name))


def _han_place(name: str, text: str) -> tuple[int, int, bool] | None:
    """Where what is so, or not so, stands in Han characters: 展出 of 是否展出, with what says that it is not."""
    if reached := compiled("(?P<what>.+)(?:<value_lead!>)(?P<done>.+)").fullmatch(name):  # 押金没交 of 押金已交
        what, done = re.escape(reached["what"]), re.escape(reached["done"])
        said_so = "(?P<denied><flag_denied>)?(?:<flag_said>|<value_lead!>)?"
        forms = (f"{what}{said_so}{done}(?:<tie_done>)?", f"{said_so}{done}(?:<tie_done>)?{what}")
        whole = next((found for form in forms if (found := compiled(form).search(text))), None)
        return (*whole.span(), whole["denied"] is not None) if whole else None
    stem = compiled("^(?:<flag_lead>)").sub("", name)
    stem = compiled("(?:<flag_tail>)$").sub("", stem)
    inside = "(?:<tie_done>)?" if len(stem) == _LEAST_HAN else ""  # 投了保
    found = compiled(inside.join(map(re.escape, stem))).search(text) if len(stem) >= _LEAST_HAN else None
    if found is None:
        return None
    place, end = found.span()
    denied = compiled("(?:<flag_denied>)$").search(text[:place])
    said = denied or compiled("(?:<flag_said>)$").search(text[:place])
    behind = compiled("(?:<tie_done>)?").match(text, end)
    return said.start() if said else place, behind.end() if behind else end, denied is not None


def _place_of(name: list[str], text: str) -> tuple[int, int, bool] | None:
    """Where words stand beside each other that are those of a name, each in any form, and whether they are denied."""
    small = [word for word in _WORD.finditer(text) if compiled("<did>|<negation>|<denies>").fullmatch(word[0])]
    words = [word for word in _WORD.finditer(text) if word not in small or word[0] in name]
    for first in range(len(words) - len(name) + 1):
        here = words[first : first + len(name)]
        left = [*name]
        for word in here:
            left = [each for each in left if not _alike(word[0], each)]
        if not left and all(any(_alike(word[0], each) for each in name) for word in here):
            start, end = here[0].start(), here[-1].end()
            inside = [word[0] for word in small if start < word.start() < end]
            return start, end, any(compiled("<denies>|<negation>").fullmatch(word) for word in inside)
    return None


def _alike(word: str, other: str) -> bool:
    """True for two forms of one word: "renewed" and "renewal"."""
    return word == other or (min(len(word), len(other)) >= _SAME and word[:_SAME] == other[:_SAME])
