"""Takes out of a question which values of a scale it is of: "P2 or higher", "above medium", 二级及以上. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from orchestrator.planning.lists.comparisons import own_name_end
from orchestrator.planning.lists.field_told import field_part
from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, field_concepts
from orchestrator.planning.lists.markers import NamedValues, is_negated
from orchestrator.planning.lists.numerals import in_digits
from orchestrator.planning.lists.ties import WORD_BEGINS
from orchestrator.planning.lists.words import KnownName, Names, Sentence, compiled, listed, unique
from shared.language import derived
from shared.language.text import plain, value_key
from shared.models.enumeration import FieldFilter

#: A bound, whether it goes by rank ("higher") or number ("later"), its direction, and whether the value itself fits.
_BOUNDS = {
    "above": ("rank", 1, False), "below": ("rank", -1, False), "least": ("rank", 1, True), "most": ("rank", -1, True),
    "after": ("number", 1, False), "before": ("number", -1, False),
    "up": ("rank", 1, True), "down": ("rank", -1, True), "later": ("number", 1, True), "earlier": ("number", -1, True),
}  # fmt: skip
_AHEAD, _BEHIND = ("least", "most", "above", "below", "after", "before"), ("up", "down", "later", "earlier")
#: Two values at least, and no more than these, make a scale.
_LEAST, _MOST = 2, 12
_MOST_TAKEN, _PIECES, _LOOK_BACK = 4, 4, 40
_NUMBERED = re.compile(r"(?P<head>[^\d]{0,16}?)(?P<number>\d{1,3})(?P<tail>[^\d]{0,8})")
_LINK = r"(?:<field_is>|<article_words>|<compare_is>)\s*$"
_LEAD = r"(?:<field_lead>|<field_said>)\s*$"
_ONE_IS_MOST = ("severity", "priority")


class Scale(NamedTuple):
    """A field whose values are in an order: value -> place. `one_is_most`: the first number is the highest rank."""

    group: FieldGroup
    places: Mapping[str, float]
    names: Names
    one_is_most: bool = False


class _BoundedValue(NamedTuple):
    """Where the words begin and end, and which values are meant."""

    start: int
    end: int
    scale: Scale
    values: tuple[str, ...]


def take_scales(sentence: Sentence, known: KnownFields, named: NamedValues) -> None:
    """Values of a scale with a bound beside them. What may be of several fields is left."""
    scales = [] if known.truncated else list(scales_of(known))
    for _ in range(_MOST_TAKEN if scales else 0):
        found = next(_bounded(sentence.text, scales, known), None)
        if found is None:
            return
        lead = compiled(_LEAD).search(sentence.text[: found.start])
        begun = lead.start() if lead else found.start
        wanted = FieldFilter(names=found.scale.group.first, values=found.values, negated=is_negated(sentence, begun))
        said = " ".join(sentence.text[found.start : found.end].split())
        named.fields.append(wanted)
        named.read_as.append(f"{said}: {field_part(wanted.model_copy(update={'names': found.scale.group.spelt}))}")
        sentence.take(begun, found.end)
        named.taken[sentence.takes] = wanted


def _bounded(text: str, scales: list[Scale], known: KnownFields) -> Iterator[_BoundedValue]:
    for begins in WORD_BEGINS.finditer(text):
        start = begins.start()
        found = [(scale, name) for scale in scales if (name := scale.names.at(text, start)) and _whole(text, name.end)]
        longest = max((name.end for _, name in found), default=0)
        longest_ones = [(scale, name) for scale, name in found if name.end == longest]
        bounds = [bounded for each in longest_ones if (bounded := _around(text, start, *each, known))]
        called = [bounded for bounded in bounds if _calls(text[bounded.start : bounded.end], bounded.scale, known)]
        bounds = called or bounds
        if len({bounded.scale.group.first for bounded in bounds}) == 1:
            yield bounds[0]


def _around(text: str, start: int, scale: Scale, name: KnownName, known: KnownFields) -> _BoundedValue | None:
    """The value with its bound, and the name of its field on either side."""
    end, begun, bound = name.end, start, ""
    behind_name = own_name_end(text, end, scale.group, known)
    for stop in (behind_name, end):
        for each in _BEHIND:
            if not bound and (behind := compiled(rf"\s*(?:<scale_{each}>)").match(text, stop)):
                bound, end = each, behind.end()
    for _ in range(_PIECES):
        place = _piece_before(text, begun, scale, known)
        ahead = None if bound else _bound_before(text, begun)
        if ahead:
            bound, begun = ahead
        elif place is None:
            break
        else:
            begun = place
    if not bound:
        return None
    end = own_name_end(text, end, scale.group, known)  # "above P2 priority"
    return _BoundedValue(begun, end, scale, _meant(scale, name.values[0], bound))


def _bound_before(text: str, place: int) -> tuple[str, int] | None:
    head = text[max(0, place - _LOOK_BACK) : place]
    for each in _AHEAD:
        if found := compiled(rf"(?:<scale_{each}>)\s*$").search(head):
            return each, place - len(head) + found.start()
    return None


def _piece_before(text: str, place: int, scale: Scale, known: KnownFields) -> int | None:
    """Where the name of the field begins that ends at `place`, or a word that links it to its value."""
    head = text[max(0, place - _LOOK_BACK) : place]
    offset, bare = place - len(head), head.rstrip()
    for begins in WORD_BEGINS.finditer(bare):
        name = known.names.at(bare, begins.start())
        if name and name.end == len(bare) and known.groups[name.values[0]].first == scale.group.first:
            return offset + begins.start()
    link = compiled(_LINK).search(head)
    return offset + link.start() if link and link.start() < len(bare) else None


def _calls(text: str, scale: Scale, known: KnownFields) -> bool:
    places = (known.names.at(text, begins.start()) for begins in WORD_BEGINS.finditer(text))
    return any(name and known.groups[name.values[0]].first == scale.group.first for name in places)


def _meant(scale: Scale, value: str, bound: str) -> tuple[str, ...]:
    by, way, whole = _BOUNDS[bound]
    sign = -way if by == "rank" and scale.one_is_most else way
    edge = scale.places[value]
    return unique(
        [each for each, place in scale.places.items() if (place - edge) * sign > 0 or (whole and place == edge)]
    ) or (f"{bound} {value}",)


def _whole(text: str, end: int) -> bool:
    return end >= len(text) or not (text[end - 1].isascii() and text[end].isascii() and text[end].isalnum())


@lru_cache(maxsize=8)  # a question is asked of three times
def scales_of(known: KnownFields) -> tuple[Scale, ...]:
    """The fields whose values are in an order: numbered alike, or words of a scale of the tables."""
    return tuple(_scales(known))


def _scales(known: KnownFields) -> Iterator[Scale]:
    seen: set[tuple[str, ...]] = set()
    for group in known.groups.values():
        values = unique([value for key in group.first for value in known.values(key)])
        if group.instead or group.first in seen or not _LEAST <= len({*map(value_key, values)}) <= _MOST:
            continue
        seen.add(group.first)
        if numbered := _numbered(values):
            yield Scale(group, numbered, Names(values), one_is_most=_first_is_most(group, values))
        elif worded := _worded(values):
            yield Scale(group, worded, Names(values))


def _numbered(values: Iterable[str]) -> dict[str, float]:
    """Value -> number where all are the same but for it: P1 to P4, Phase 2, 二级."""
    found = {value: _NUMBERED.fullmatch(in_digits(plain(value))) for value in values}
    above = {value: 0.0 for value in found if compiled("<scale_top>").fullmatch(plain(value))}  # 特级 is before 一级
    bare = [value for value in found if found[value] is None and compiled("<scale_none>").fullmatch(plain(value))]
    found = {value: each for value, each in found.items() if value not in (*bare, *above)}
    forms = {(each["head"].strip(), each["tail"].strip()) if each else ("", "") for each in found.values()}
    if len(forms) != 1 or ("", "") in forms:
        return {}
    return above | {value: float(each["number"]) for value, each in found.items() if each}


def _worded(values: Iterable[str]) -> dict[str, float]:
    keys = {value: value_key(value) for value in values}
    for steps in _steps():
        found: dict[str, float] = {}
        for value, key in keys.items():
            place = next((place for place, step in enumerate(steps) if step.fullmatch(key)), None)
            if place is None:
                break
            found[value] = float(place)
        if len(found) == len(keys) and len({*found.values()}) > 1:
            return found
    return {}


@derived
def _steps() -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The scales of all languages, each from its least step."""
    return tuple(tuple(re.compile(step.strip()) for step in row.split("<")) for row in listed("scales"))


def _first_is_most(group: FieldGroup, values: Iterable[str]) -> bool:
    """True for severities and priorities: sev1 is higher than sev2."""
    told = {name for concept in _ONE_IS_MOST for name in field_concepts().get(concept, ())}
    return bool({*group.first} & told) or any(compiled("(?:<scale_first>)").match(plain(value)) for value in values)
