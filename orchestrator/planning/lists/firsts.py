"""Takes out of a question which documents are first or last by the days of a field: "joined last", 最早入库的. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import NamedTuple

from orchestrator.planning.lists.comparisons import fields_of_days
from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, of_one_word
from orchestrator.planning.lists.markers import COUNT, MAX_LISTED, NamedValues, counted_in
from orchestrator.planning.lists.superlatives import NAME_BEGINS, single
from orchestrator.planning.lists.words import Nouns, Sentence, compiled, is_plural, listed, word_start
from shared.language import reader_sentence
from shared.language.text import is_han, terms, value_key
from shared.models.enumeration import AmountOrder, ListOrder

_DIRECTIONS: dict[str, ListOrder] = {"day_last": "newest", "day_first": "oldest"}
_ONCE = rf"\s*(?:{COUNT}<counted>)?\s*"
_COUNT_BEFORE = rf"(?:<article_words>\s+)?(?<![a-z0-9.]){COUNT}\s*$"
_COUNT_BEHIND = rf"\s*<tail>?\s*{COUNT}(?:<counted>|(?=\s))"
_WORD_BEFORE = re.compile(r"(?<![^\s(])([a-z][a-z\-]+)\s*$")
_WORD_BEHIND = re.compile(r"\s*([a-z][a-z\-]+)")
_WORD = re.compile(r"(?<![^\s(])[a-z][a-z\-]+")
_NAME_LINK = r"(?:<compare_is>|<tail>|\s)*$"
_LOOK_BACK = 24


class _Days(NamedTuple):
    """A field of days: value -> day."""

    group: FieldGroup
    days: Mapping[str, date]


class _First(NamedTuple):
    """Where the words begin and end, which field is meant, and where its verb stands apart from them."""

    start: int
    end: int
    field: _Days
    order: ListOrder
    verb: tuple[int, int] | None = None


def take_firsts(  # noqa: PLR0913 - what is read, with what, and where it goes
    sentence: Sentence, known: KnownFields, nouns: Nouns, named: NamedValues, today: date, *, undated: bool
) -> None:
    """The order by the days of a field, and how many of it.

    `undated`: documents have no date of their own, so the only field of days counts where none is named; of several
    none does, and what they are is told.
    """
    if known.truncated or named.by or named.order:
        return
    fields = [_Days(*each) for each in fields_of_days(known, today)]
    found = next(_found(sentence.text, fields, known, undated=undated), None) if fields else None
    if found is None:
        if undated and len(fields) > 1:
            _leave(sentence, fields, named)
        elif not undated:
            _first_of_all(sentence, nouns, named)
        return
    said = " ".join(sentence.text[found.start : found.end].split())
    start, end, limit = _counted(sentence.text, found, nouns)
    if limit > MAX_LISTED:
        return
    for place in sorted(filter(None, ((start, end), found.verb)), reverse=True):
        sentence.take(*place)
    label = found.field.group.spelt[0]
    numbers = {value_key(value): float(day.toordinal()) for value, day in found.field.days.items()}
    named.by = AmountOrder(names=found.field.group.first, label=label, numbers=numbers)
    named.order, named.limit = found.order, limit
    if value_key(label) not in value_key(said):
        named.read_as.append(f"{said}: {label}")


def _counted(text: str, found: _First, nouns: Nouns) -> tuple[int, int, int]:
    """Where the words begin and end with the number of documents beside them, and that number."""
    start, end, limit = found.start, found.end, 0
    if before := compiled(_COUNT_BEFORE).search(text[:start]):
        start, limit = before.start(), counted_in(before)
    elif behind := compiled(_COUNT_BEHIND).match(text, end):
        end, limit = behind.end(), counted_in(behind)
    if inside := compiled(_ONCE).search(text[found.start : found.end]):
        limit = limit or counted_in(inside)
    return start, end, limit or single(text, nouns)


def _first_of_all(sentence: Sentence, nouns: Nouns, named: NamedValues) -> None:
    """The one document that is first, or last, by its own date: "the first claim of 2026"."""
    for phrase, order in _DIRECTIONS.items():
        for found in compiled(rf"(?<![a-z])<{phrase}>(?=\s(?P<noun>[a-z]))").finditer(sentence.text):
            noun = nouns.kinds.at(sentence.text, found.start("noun")) or nouns.folders.at(
                sentence.text, found.start("noun")
            )
            if noun and not is_plural(sentence.text[found.start("noun") : noun.end]):
                named.order, named.limit = order, 1
                sentence.take(*found.span())
                return


def _leave(sentence: Sentence, fields: list[_Days], named: NamedValues) -> None:
    """Name the words of an order that no single field of days is meant by."""
    for phrases in _DIRECTIONS:
        if found := compiled(f"<{phrases}>").search(sentence.text):
            named.left.append(found[0].strip())
            labels = reader_sentence("comma", named.question).join(each.group.spelt[0] for each in fields)
            named.warnings.append(reader_sentence("list_days_open", named.question, found[0].strip(), labels))
            sentence.take(*found.span())
            return


def _found(text: str, fields: list[_Days], known: KnownFields, *, undated: bool) -> Iterator[_First]:
    for phrases, order in _DIRECTIONS.items():
        for found in compiled(f"<{phrases}>").finditer(text):
            start, end = found.span()
            if is_han(found[0]):
                yield from _beside_han(text, start, end, fields, order, known)
            else:
                yield from _beside_latin(text, start, end, fields, order, known)
            own = [] if not undated else _verbs_apart(text, end, fields)
            if len({field.group.first for field, _ in own}) == 1:
                yield _First(start, end, own[0][0], order, own[0][1])
            elif undated and not own and len(fields) == 1:
                yield _First(start, end, fields[0], order)


def _beside_latin(  # noqa: PLR0913, PLR0917 - the words, and the fields that they may be of
    text: str, start: int, end: int, fields: list[_Days], order: ListOrder, known: KnownFields
) -> Iterator[_First]:
    """Words such as "joined last", "first opened", "latest due date", "with the earliest start"."""
    for each, stop in _named_behind(text, end, fields, known):
        lead = compiled(r"(?:(?:<field_lead>|<field_any>|<article_words>|<amount_verb>)\s*)*$").search(text[:start])
        yield _First(lead.start() if lead else start, stop, each, order)
    behind, before = _WORD_BEHIND.match(text, end), _WORD_BEFORE.search(text[:start])
    for word in filter(None, (behind, before)):
        done = [each for each in fields if _is_done(word[1], each.group)]
        if len(done) == 1:
            yield _First(min(start, word.start(1)), max(end, word.end(1)), done[0], order)


def _named_behind(text: str, end: int, fields: list[_Days], known: KnownFields) -> Iterator[tuple[_Days, int]]:
    place = word_start(text, end)
    name = known.names.at(text, place)
    for each in fields if name else ():
        if name and known.groups[name.values[0]].first == each.group.first:
            tail = compiled(r"\s*<day_tail>").match(text, name.end)
            yield each, tail.end() if tail else name.end


def _beside_han(  # noqa: PLR0913, PLR0917 - the words, and the fields that they may be of
    text: str, start: int, end: int, fields: list[_Days], order: ListOrder, known: KnownFields
) -> Iterator[_First]:
    """Words such as 最早入库, 最近一次开工, 开工日期最晚, 入库最早."""
    once = compiled(_ONCE).match(text, end)
    behind = once.end() if once else end
    for each in fields:
        for stem in _stems(each, known):
            if text.startswith(stem, behind):
                tail = compiled(r"<day_tail>").match(text, behind + len(stem))
                yield _First(start, tail.end() if tail else behind + len(stem), each, order)
    head = compiled(_NAME_LINK).sub("", text[:start], 1)
    for begins in NAME_BEGINS.finditer(head, max(0, len(head) - _LOOK_BACK)):
        name = known.names.at(head, begins.start())
        for each in fields:
            called = name and name.end == len(head) and known.groups[name.values[0]].first == each.group.first
            if called or any(head[begins.start() :] == stem for stem in _stems(each, known)):
                yield _First(begins.start(), end, each, order)


def _stems(field: _Days, known: KnownFields) -> list[str]:
    return [stem for key, stem in known.dated if key in field.group.first and is_han(stem)]


def _verbs_apart(text: str, end: int, fields: list[_Days]) -> list[tuple[_Days, tuple[int, int]]]:
    """Verbs of fields of days anywhere behind: "the first job that we received"."""
    words = list(_WORD.finditer(text, end))
    return [(each, word.span()) for word in words for each in fields if _is_done(word[0], each.group)]


def _is_done(word: str, group: FieldGroup) -> bool:
    """True for what is done on the day of that field, by its name or the tables of verbs."""
    if compiled("<frame>|<did>|<head_before>").fullmatch(word) or not terms(word):
        return False
    if any(of_one_word(word, name) for name in group.first):
        return True
    rows = zip(listed("day_name"), listed("day_verb"), strict=True)
    return any(re.fullmatch(verb, word) and any(re.fullmatch(name, key) for key in group.first) for name, verb in rows)
