"""Takes out of a question what it asks the values of: "how many per team", "which suppliers", "who owns ...". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, field_concepts, of_one_word
from orchestrator.planning.lists.markers import NamedValues
from orchestrator.planning.lists.words import Nouns, Sentence, compiled, is_plural
from shared.language.text import HAN, is_han
from shared.models.enumeration import FieldFilter, Grouping

#: What every document may have, beside its fields.
_BUILT_IN: tuple[Literal["tag", "kind", "month", "year"], ...] = ("tag", "kind", "month", "year")
_LEAD = r"\s*(?:(?:<group_prefix>|<article_words>)\s*)*"
_SUFFIX = r"\s*<group_suffix>"
_DENIED = r"\s*(?:<negation>|<group_denied>)"
_VERB = re.compile(r"\s+([a-z]{3,})(?=\s)")
_LAST_VERB = r"(?P<aux>^\s*(?:<group_aux>)\s.*)\s(?P<verb>[a-z]{3,})(?=[\s?.!]*$)"
_DOES = r"\s*(?:<group_done>)?\s*"
_WORD = re.compile(r"[a-z]{3,}")
#: Characters of the longest name before 有哪些.
_LONGEST = 8
_HAN_VERB = re.compile(rf"[{HAN}]{{1,4}}")


class _AskedGroup(NamedTuple):
    """Where the words begin and end; `asked`: the values themselves are asked for, documents without any are none."""

    start: int
    end: int
    per: Grouping
    asked: bool = False


def take_groups(sentence: Sentence, known: KnownFields, nouns: Nouns, named: NamedValues) -> None:
    """What the list is counted by. A denial directly behind the values asks for those that have none: it is left."""
    reader = _GroupReader(sentence.text, known, nouns)
    ways = () if known.truncated else (reader.who, reader.asked, reader.counted)
    found = next((found for way in ways for found in way()), None)
    if found is None:
        return
    text, end = sentence.text, reader.done_end(found.end) if found.asked else found.end
    if found.asked and compiled(_DENIED).match(text, end) and not known.anywhere.at(text, end):
        return
    said = " ".join(text[found.start : end].split())
    last = compiled(_LAST_VERB).search(text[end:]) if found.asked else None
    if last and reader.is_verb(last["verb"]):
        said += f" … {last['verb']}"
        text = text[: end + last.start("verb")] + text[end + last.end("verb") :]
    sentence.text = text
    sentence.take(found.start, end)
    named.per = found.per
    if found.per.by == "field":
        named.columns = (*named.columns, found.per.label)
        named.fields += [FieldFilter(names=found.per.names)] if found.asked else []
        named.read_as.append(f"{said}: {found.per.label}")


class _GroupReader:
    """Looks for what a text counts documents by, and for the values that it asks for."""

    def __init__(self, text: str, known: KnownFields, nouns: Nouns) -> None:
        self._text, self._known, self._nouns = text, known, nouns
        groups = {group.first: group for group in known.groups.values() if not group.instead}
        self._people = [group for group in groups.values() if known.is_person(group.first)]

    def asked(self) -> Iterator[_AskedGroup]:
        """Phrases such as "which makes", "list all drivers", 有哪些出版社, 出版社有哪些."""
        text = self._text
        for lead in compiled("<group_asked>").finditer(text):
            if found := self._values_at(lead.end(), plural=not is_han(lead[0][-1])):
                yield _AskedGroup(lead.start(), found[1], found[0], asked=True)
        for lead in compiled("<group_listed>").finditer(text):
            found = self._values_at(lead.end())
            if found and compiled(r"(?:<head_tail>)*$").match(text, found[1]):
                yield _AskedGroup(lead.start(), found[1], found[0], asked=True)
        for behind in compiled("<group_asked_behind>").finditer(text):
            for start in range(max(0, behind.start() - _LONGEST), behind.start()):
                found = self._values_at(start) if is_han(text[start]) else None
                if found and found[1] == behind.start():
                    yield _AskedGroup(start, behind.end(), found[0], asked=True)

    def counted(self) -> Iterator[_AskedGroup]:
        """Phrases such as "per team", "grouped by team", "how many ... by team", 每个部门, 按部门统计."""
        counting = compiled("<counting>|<group_counting>").search(self._text) is not None
        for lead in compiled("<group_by>|<group_by_counted>").finditer(self._text):
            if not counting and (is_han(lead[0][-1]) or compiled("<group_by_counted>").fullmatch(lead[0])):
                continue
            if found := self._values_at(lead.end(), times=True):
                behind = compiled(r"\s*<group_end>").match(self._text, found[1])
                yield _AskedGroup(lead.start(), behind.end() if behind else found[1], found[0])

    def who(self) -> Iterator[_AskedGroup]:
        """Phrases such as "who owns", "who is assigned to", 由哪些人负责: the field whose verb it is."""
        text = self._text
        for lead in compiled("<group_who>").finditer(text):
            does = compiled(_DOES).match(text, lead.end())
            starts = (lead.end() + (text[lead.end() : lead.end() + 1] == " "), does.end() if does else lead.end())
            for start in dict.fromkeys(starts):
                for group, end in self._doing(start):
                    yield _AskedGroup(lead.start(), end, _of_field(group), asked=True)
        for lead in compiled("<group_who_behind>").finditer(text):
            tail = compiled(r"<group_who_end>?[\s?。!]*$").search(text, lead.end())
            verb = text[lead.end() : tail.start() if tail else None].strip()
            for group in self._people if verb else ():
                if _is_of(verb, group):
                    yield _AskedGroup(lead.start(), len(text), _of_field(group), asked=True)

    def _doing(self, start: int) -> Iterator[tuple[FieldGroup, int]]:
        """The field of what somebody does at `start`, and where that is said; else the only field of people."""
        text, known, verb = self._text, self._known, _WORD.match(self._text, start)
        for group, said, behind, _ in known.verbs(text):
            if found := compiled(f"(?:{behind})|(?:{said})").match(text, start):
                yield group, found.end()
        for concept, group in known.concepts.items():
            found = compiled(f"<behind_{concept}>|<said_{concept}>").match(text, start)
            if found and found[0] and known.is_person(group.first):
                yield group, found.end()
        if done := _HAN_VERB.match(text, start):
            yield from ((group, done.end()) for group in self._people if _is_of(done[0], group))
        if verb and len(self._people) == 1 and self.is_verb(verb[0]):
            done_to = compiled(r"\s*<group_done_to>(?=\s)").match(text, verb.end())
            yield self._people[0], done_to.end() if done_to else verb.end()

    def _values_at(self, place: int, *, times: bool = False, plural: bool = False) -> tuple[Grouping, int] | None:
        """What the name at `place` groups by, and where it ends. `times`: also by months and years.

        `plural`: the name has to be in the plural.
        """
        text, known = self._text, self._known
        lead = compiled(_LEAD).match(text, place)
        start = lead.end() if lead else place
        name = known.names.at(text, start)
        for word in _BUILT_IN if times else _BUILT_IN[:2]:
            named = None if name else compiled(f"(?:<group_{word}>)").match(text, start)
            if named and not (plural and not named[0].endswith("s")):
                return Grouping(by=word, label=word), named.end()
        name = name or known.short.at(text, start)
        if name is None or any(names.at(text, start) for names in (self._nouns.kinds, self._nouns.folders)):
            return None
        suffix = compiled(_SUFFIX).match(text, name.end)
        end = suffix.end() if suffix else name.end
        value = known.anywhere.at(text, start)  # "owned by keeper 1" names no field "keeper"
        if value is not None and value.end > end:
            return None
        several = is_han(text[start]) or (lead and lead[0].strip()) or is_plural(text[start:end])
        whole = not (text[end - 1 : end].isascii() and text[end : end + 1].isascii() and text[end : end + 1].isalnum())
        return (_of_field(known.groups[name.values[0]]), end) if whole and (several or not plural) else None

    def done_end(self, end: int) -> int:
        """Where that ends which values do with documents: "which lawyers handle signed contracts", 哪些人有."""
        verb = _VERB.match(self._text, end)
        have = compiled(r"\s*<group_have>").match(self._text, end)
        return verb.end(1) if verb and self.is_verb(verb[1]) else have.end() if have else end

    def is_verb(self, word: str) -> bool:
        """True for a word that says nothing else: no noun, value, small word or judgement."""
        if compiled("<untied>|<negation>|<head_before>|<frame>|<noun>|<both>|<either>|<except>").fullmatch(word):
            return False
        return not any(names.of(word) for names in (*self._nouns, self._known.names, self._known.anywhere))


def _is_of(verb: str, group: FieldGroup) -> bool:
    """True for a verb of the field's name, or of a name that means the same."""
    same = (name for names in field_concepts().values() if {*group.first} & {*names[:1]} for name in names)
    return any(of_one_word(verb, name) for name in (*group.first, *same))


def _of_field(group: FieldGroup) -> Grouping:
    return Grouping(names=group.first, label=group.spelt[0])
