"""Takes out of a question by which numbers it orders documents: "the three heaviest parts", 金额最高的五份. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.planning.lists.amounts import MONEY, Amounts, amounts_of, numeric_fields, own_unit_end
from orchestrator.planning.lists.field_values import FieldGroup, KnownFields
from orchestrator.planning.lists.markers import COUNT, MAX_LISTED, NamedValues, counted_in
from orchestrator.planning.lists.scales import scales_of
from orchestrator.planning.lists.words import Nouns, Sentence, compiled, is_plural, listed, word_start
from shared.language.text import HAN, is_han, value_key
from shared.models.enumeration import AmountOrder, ListOrder

#: What words such as "heaviest" measure: the phrases `most_...` and `least_...`, and the dimensions of units.
MEASURED = {
    "money": (MONEY,),
    "mass": ("mass",),
    "extent": ("time", "months", "length"),
    "size": ("bytes", "area", "volume"),
}
#: The dimension of values in an order.
SCALE = "scale"
_DIRECTIONS: tuple[ListOrder, ...] = ("most", "least")
#: Before what is most, and behind it: how many of them.
_COUNT_BEFORE = rf"(?:<article_words>\s+)?(?:<top_of>\s*)?(?<![a-z0-9.]){COUNT}<counted>?\s*$"
_COUNT_BEHIND = rf"\s*<tail>?\s*(?:<top_of>\s*{COUNT}<counted>?|{COUNT}<counted>)"
_COUNT = rf"(?<![a-z0-9.])(?:<top_of>\s*)?(?<![a-z0-9.]){COUNT}<counted>?\s*"
_LEAD = r"(?:(?:<field_lead>|<compare_verb>|<article_words>|<field_any>|<amount_verb>)\s*)*$"
_NAME_LINK = r"\s*(?:<compare_is>|<tail>)?\s*$"
#: A word before a noun that something is measured of behind it.
_WORD_APART = r"(?:<article_words>\s+)?<amount_{}>(?=\s[^,;]{{1,40}}\s<by_number>)"
_FIRST = r"\s*(?:<ones_first>)"
_SORTED = r"(?:<sorted_by>)\s*(?:<article_words>\s+)?"
NAME_BEGINS = re.compile(rf"(?<![a-z0-9_])(?=[a-z0-9])|(?=[{HAN}])")
#: So far before a word its field is looked for, in characters.
_LOOK_BACK = 40


class _Found(NamedTuple):
    """Where the words begin and end, whose numbers count, and whether they only sort the list.

    `word`: where the word that says it stands, if apart and before.
    """

    start: int
    end: int
    group: FieldGroup
    amounts: Amounts
    direction: ListOrder
    sorts: bool = False
    word: tuple[int, int] | None = None


def take_superlatives(sentence: Sentence, known: KnownFields, nouns: Nouns, named: NamedValues) -> None:
    """The order by a field of numbers, and how many of that order. What has no such field, or several, is left."""
    if known.truncated:
        return
    readers = (_by_number, _sorted_by, _superlatives)
    found = next((found for read in readers for found in read(sentence.text, known)), None)
    if found is None:
        return
    text, start, end, limit = sentence.text, found.start, found.end, 0
    said = " ".join(text[start:end].split())
    if behind := compiled(_FIRST).match(text, end):
        found, end = found._replace(sorts=True), behind.end()
    if found.word:
        sentence.take(start, end)
        text, (start, end) = sentence.text, found.word
    if before := compiled(_COUNT_BEFORE).search(text[:start]):
        start, limit = before.start(), counted_in(before)
    elif behind := compiled(_COUNT_BEHIND).match(text, end):
        end, limit = behind.end(), counted_in(behind)
    sentence.take(start, end)
    rest = f"{text[:start]}{text[end:]}"
    alone = 1 if found.amounts.dimension == SCALE else single(rest, nouns)  # all that have the highest go along
    limit = limit or _counted_noun(sentence, nouns) or (0 if found.sorts else alone)
    if limit > MAX_LISTED:
        named.left.append(" ".join(text[start:end].split()))
        return
    numbers = {value_key(value): number for value, number in found.amounts.numbers.items()}
    label = found.group.spelt[0]
    named.order, named.limit = found.direction, limit
    named.by = AmountOrder(names=found.group.first, label=label, numbers=numbers)
    if value_key(label) not in value_key(said):
        named.read_as.append(f"{said}: {label}")
    if named.per:  # "who drove the most kilometres" may be of one document, or of all of somebody's
        named.guessed.append(said)


def _superlatives(text: str, known: KnownFields) -> Iterator[_Found]:
    """Phrases such as "the highest budget", "the most patients", "cheapest", 标的额最高."""
    for direction in _DIRECTIONS:
        for found in compiled(f"<amount_{direction}>").finditer(text):
            if behind := field_behind(text, found.end(), known):
                lead = compiled(_LEAD).search(text[: found.start()])
                start = lead.start() if lead else found.start()
                own = field_before(text, start, known)  # "enrolled the fewest patients"
                start = own[2] if own and own[0].first == behind[0].first else start
                yield _Found(start, behind[2], *behind[:2], direction)
            elif before := field_before(text, found.start(), known):
                yield _Found(before[2], found.end(), *before[:2], direction)
        for measured in MEASURED:
            for found in compiled(f"<verb_{measured}>\\s*<verb_{direction}>|<{direction}_{measured}>").finditer(text):
                if before := field_before(text, found.start(), known):
                    yield _Found(before[2], found.end(), *before[:2], direction)
                elif field := measured_by(measured, known):
                    yield _Found(found.start(), found.end(), *field, direction)
        yield from _of_scale(text, known, direction)


def measured_by(measured: str, known: KnownFields) -> tuple[FieldGroup, Amounts] | None:
    """The field that says how expensive, heavy, long or big documents are: the only one, or the one called so."""
    numeric = list(numeric_fields(known))
    fields = [each for each in numeric if each[1].dimension.startswith(MEASURED[measured])]
    if not fields and measured == "size":  # "the biggest contract"
        return measured_by("money", known)
    if len(fields) > 1:
        for pattern in listed(f"named_{measured}"):
            called = [each for each in fields if any(re.fullmatch(pattern, key) for key in each[0].first)]
            if called:
                fields = called
                break
    if not fields:
        bare = [each for each in numeric if not each[1].unit]
        names = "|".join(listed(f"named_{measured}"))
        fields = [each for each in bare if any(re.fullmatch(names, key) for key in each[0].first)]
    return fields[0] if len(fields) == 1 else None


def _of_scale(text: str, known: KnownFields, direction: ListOrder) -> Iterator[_Found]:
    """Phrases such as "the highest priority", "most urgent", 级别最高: by the places of values in their order."""
    for scale in scales_of(known):
        sign = -1.0 if scale.one_is_most else 1.0
        amounts = Amounts({value: sign * place for value, place in scale.places.items()}, "", frozenset(), SCALE)
        middle = sum(scale.places.values()) / len(scale.places) * sign
        for found in compiled(f"<scale_{direction}_of>").finditer(text):
            if called := _called(text, found, scale.group, known):
                yield _Found(*called, scale.group, amounts, direction)
                continue
            place = word_start(text, found.end())
            value = scale.names.at(text, place)
            if value is None or compiled("<scale_word>").fullmatch(found[0]) is None:
                continue
            high = amounts.numbers[value.values[0]] >= middle
            way: ListOrder = direction if high else "least" if direction == "most" else "most"
            yield _Found(found.start(), value.end, scale.group, amounts, way)


def _called(text: str, found: re.Match[str], group: FieldGroup, known: KnownFields) -> tuple[int, int] | None:
    """Where the words begin and end where the name of that field stands beside what is highest."""
    place = word_start(text, found.end())
    behind = known.names.at(text, place) or known.short.at(text, place)
    if behind and known.groups[behind.values[0]].first == group.first:
        lead = compiled(_LEAD).search(text[: found.start()])
        return (lead.start() if lead else found.start()), behind.end
    head = compiled(_NAME_LINK).sub("", text[: found.start()], 1)
    for begins in NAME_BEGINS.finditer(head, max(0, len(head) - _LOOK_BACK)):
        name = known.names.at(head, begins.start()) or known.short.at(head, begins.start())
        if name and name.end == len(head) and known.groups[name.values[0]].first == group.first:
            return begins.start(), found.end()
    return None


def _by_number(text: str, known: KnownFields) -> Iterator[_Found]:
    """Phrases such as "the smallest trial by number of patients": the noun stands between, and is left."""
    for direction in _DIRECTIONS:
        for found in compiled(_WORD_APART.format(direction)).finditer(text):
            for lead in compiled(r"<by_number>\s+").finditer(text, found.end()):
                if behind := field_behind(text, lead.end(), known):
                    yield _Found(lead.start(), behind[2], *behind[:2], direction, word=found.span())


def _sorted_by(text: str, known: KnownFields) -> Iterator[_Found]:
    """Phrases such as "sorted by budget, highest first", 按标的额从高到低."""
    for lead in compiled(_SORTED).finditer(text):
        if behind := field_behind(text, lead.end(), known):
            group, amounts, end = behind
            ways = {direction: compiled(rf"\s*,?\s*<{direction}_first>").match(text, end) for direction in _DIRECTIONS}
            direction = next((name for name in _DIRECTIONS if ways[name]), None)
            way = ways[direction] if direction else compiled(r"\s*<sorted_end>").match(text, end)
            top = compiled(rf"<top_of>\s*{COUNT}").search(text[: lead.start()])
            if way or top or not compiled("<sorted_unsure>").fullmatch(lead[0].strip()):
                stop = way.end() if way else end
                yield _Found(lead.start(), stop, group, amounts, direction or ("most" if top else "least"), sorts=True)


def field_behind(text: str, end: int, known: KnownFields) -> tuple[FieldGroup, Amounts, int] | None:
    """The field of numbers whose name, or whose own unit, stands at `end`."""
    counted = compiled(r"\s*(?:<number_of>\s)?\s*").match(text, end)
    start = counted.end() if counted else end
    for names in (known.names, known.short):
        if (name := names.at(text, start)) and (amounts := amounts_of(known.groups[name.values[0]])):
            tail = compiled(r"\s*<amount_tail>").match(text, name.end)
            return known.groups[name.values[0]], amounts, tail.end() if tail else name.end
    fits = [
        (group, amounts, stop)
        for group, amounts in numeric_fields(known)
        if amounts.unit and (stop := own_unit_end(text, start, amounts))
    ]
    exact = [each for each in fits if value_key(text[start : each[2]]) in each[1].units]
    fits = exact if len(fits) > 1 else fits
    return fits[0] if len(fits) == 1 else None


def field_before(text: str, start: int, known: KnownFields) -> tuple[FieldGroup, Amounts, int] | None:
    """The field of numbers whose name ends directly before `start`, and where that begins."""
    head = compiled(_NAME_LINK).sub("", text[:start], 1)
    for begins in NAME_BEGINS.finditer(head, max(0, len(head) - _LOOK_BACK)):
        for names in (known.names, known.short):
            name = names.at(head, begins.start())
            if name and name.end == len(head) and (amounts := amounts_of(known.groups[name.values[0]])):
                return known.groups[name.values[0]], amounts, begins.start()
    return None


def _counted_noun(sentence: Sentence, nouns: Nouns) -> int:
    """Take the number before the documents: "three" of "the three trials with the most patients"."""
    for found in compiled(_COUNT).finditer(sentence.text):
        kind = nouns.kinds.at(sentence.text, found.end()) or nouns.folders.at(sentence.text, found.end())
        if kind or compiled("<noun>").match(sentence.text, found.end()):
            sentence.take(*found.span())
            return counted_in(found)
    return 0


def single(text: str, nouns: Nouns) -> int:
    """1 where one document is asked for: a noun in the singular, or none behind 哪个; else 0."""
    if compiled("<several>").search(text):
        return 0
    places = [found.start() for found in NAME_BEGINS.finditer(text)]
    named = [(place, nouns.kinds.at(text, place) or nouns.folders.at(text, place)) for place in places]
    spelt = [text[place : noun.end] for place, noun in named if noun]
    spelt += [found[0] for found in compiled("<noun>").finditer(text)]
    return int(not any(is_plural(each) and not is_han(each[-1]) for each in spelt))
