"""Takes out of a question what it asks the values of: "how many per team", "which suppliers", "who owns ...". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

from orchestrator.planning.lists.amounts import amounts_of
from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, of_one_word
from orchestrator.planning.lists.markers import NamedValues
from orchestrator.planning.lists.owners import unowned
from orchestrator.planning.lists.places import asked_places, is_of
from orchestrator.planning.lists.words import Nouns, Sentence, compiled, is_plural, unique, word_start
from shared.language import reader_sentence
from shared.language.text import HAN, is_han, value_key
from shared.models.enumeration import FieldFilter, Grouping, ListOrder

#: What every document may have, beside its fields.
_BUILT_IN: tuple[Literal["tag", "kind", "month", "year"], ...] = ("tag", "kind", "month", "year")
_LEAD = r"\s*(?:(?:<group_prefix>|<article_words>)\s*)*"
_SUFFIX = r"\s*<group_suffix>"
_DENIED = r"\s*(?:<negation>|<group_denied>)"
#: Somebody is asked for, by a verb that every document may be the object of: "who did", 谁做的, "whose".
_OPEN_WHO = r"(?:<group_who>)\s*(?:<group_done>\s+)?(?:<who_verb>)(?![a-z])|<group_whose>"
_VERB = re.compile(r"\s+([a-z]{3,})(?=\s)")
_LAST_VERB = r"(?P<aux>^\s*(?:<group_aux>)\s.*)\s(?P<verb>[a-z]{3,})(?=[\s?.!]*$)"
_DOES = r"\s*(?:<group_done>)?\s*"
_WORD = re.compile(r"[a-z]{3,}")
#: Between the values that are asked for and what they have the most of: words that say nothing else.
_MOST_OF = (
    r"(?P<between>(?:\s+[a-z']+){0,3}?)\s+(?:<article_words>\s+)?"
    r"(?:(?P<most><top_most>)|(?P<least><top_least>))(?![a-z])"
)
_MOST_OF_HAN = (
    r"(?:<top_counted>)?\s*(?:(?P<most><top_most_behind>)|(?P<least><top_least_behind>))(?=<tail>|[\s?。!]|$)"
)
#: A word that says nothing else, and so is what somebody does.
_NO_VERB = "<untied>|<negation>|<head_before>|<frame>|<noun>|<both>|<either>|<except>|<head_lead>|<no_verb>"
_RANKED = r"<amount_most>|<amount_least>|<top_of>"
_ANY_WHO = r"(?:<group_who>)\s+(?:(?:<group_done>)\s+)?(?P<verb>[a-z]{3,})(?![a-z])"
_OPEN_BEHIND = r"(?:<group_who_behind>)(?:<who_verb>)(?:<group_who_end>)?(?=[\s?。!]*$)"
#: Before the documents of which a value has the most, what is done with them: 修的 in 哪位修复师修的文物最多.
_DONE_HAN = rf"[{HAN}]{{1,3}}(?:<value_end!>)"
_ANY_ONE = re.compile(r" an? ")
#: Characters of the longest name before 有哪些.
_LONGEST = 8
#: A number and its unit, before what it is counted for.
_RATE = re.compile(r"\d ?[a-z€$£]{0,5} $")
#: The same of any field before a word inside of it.
_LONGEST_NAME = 30
#: Han characters of the longest verb, and of one of which nothing says where it ends.
_LONGEST_VERB, _USUAL_VERB = 4, 2


class _AskedGroup(NamedTuple):
    """Where the words begin and end; `asked`: the values themselves are asked for, documents without any are none.

    `between`: words that stand before `rest`, what is said of them apart, and may be of no phrase.
    """

    start: int
    end: int
    per: Grouping
    asked: bool = False
    order: ListOrder = ""
    rest: tuple[int, int] | None = None
    between: str = ""


def take_groups(
    sentence: Sentence, known: KnownFields, nouns: Nouns, named: NamedValues, *, of_people: bool = False
) -> None:
    """What the list is counted by. A denial directly behind the values asks for those that have none: it is left.

    `of_people`: who is asked for is a document itself, and no value.
    """
    reader = _GroupReader(sentence.text, known, nouns)
    lead = compiled("<group_who>").search(sentence.text) if of_people else None
    if lead:
        sentence.take(*lead.span())
        reader = _GroupReader(sentence.text, known, nouns)
    reader.people = [] if of_people else reader.people
    counted = partial(reader.counted, total=bool(named.total))
    ways = () if known.truncated else (reader.most, reader.who, reader.placed, reader.asked, counted)
    found = next((found for way in ways for found in way()), None)
    if found is None:
        _take_open_who(sentence, reader, known, named)
        return
    named.order = found.order
    if found.rest:
        named.guessed += unowned(found.between, found.per.names, known, nouns)
        sentence.take(*found.rest)
        reader = _GroupReader(sentence.text, known, nouns)
    text, end = sentence.text, reader.done_end(found.end) if found.asked and not found.rest else found.end
    if found.asked and not found.rest and compiled(_DENIED).match(text, end) and not known.anywhere.at(text, end):
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
        named.guessed += unowned(said, found.per.names, known, nouns)


def _take_open_who(sentence: Sentence, reader: _GroupReader, known: KnownFields, named: NamedValues) -> None:
    """Show all fields of people where somebody is asked for by a word that is of none of them: "who did the jobs"."""
    people = [] if known.truncated else reader.people
    lead = reader.open_who() if people else None
    if lead is None:
        return
    called = [group for group in people if any(is_of(noun, group) for noun in reader.nouns_of_documents())]
    people = called if len(called) == 1 else people  # 修复师 of 修复
    labels = unique([group.spelt[0] for group in people])
    if len(people) == 1:
        named.per = _of_field(people[0])
        named.fields.append(FieldFilter(names=people[0].first))
        named.read_as.append(f"{lead[0].strip()}: {labels[0]}")
    else:
        fields = reader_sentence("comma", named.question).join(labels)
        named.warnings.append(reader_sentence("list_who_open", named.question, lead[0].strip(), fields))
    named.columns = (*named.columns, *labels)
    sentence.take(*lead.span())


class _GroupReader:
    """Looks for what a text counts documents by, and for the values that it asks for."""

    def __init__(self, text: str, known: KnownFields, nouns: Nouns) -> None:
        self._text, self._known, self._nouns = text, known, nouns
        self._own = known.own
        self.people = [group for group in known.own if known.is_person(group.first)]

    def open_who(self) -> re.Match[str] | None:
        """Where somebody is asked for by a verb of no field, beside documents, or a value that says which they are."""
        text = self._text
        lead = compiled(_OPEN_WHO).search(text) or compiled(_ANY_WHO).search(text)
        if lead and "verb" in lead.groupdict() and not self.is_verb(lead["verb"] or ""):
            return None
        if lead is None:
            return compiled(_OPEN_BEHIND).search(text)
        places = [place for place in _word_places(text) if place >= lead.end()]
        known = any(self._known.anywhere.at(text, place) for place in places)
        return lead if known or self.documents_at(lead.end()) else None

    def nouns_of_documents(self) -> list[str]:
        """What documents are called in the text: kinds and folders."""
        text, nouns = self._text, (self._nouns.kinds, self._nouns.folders)
        found = (names.at(text, place) for place in _word_places(text) for names in nouns)
        return [value_key(value) for name in found if name for value in name.values]

    def most(self) -> Iterator[_AskedGroup]:
        """Phrases such as "which client has the most jobs", "the team with the fewest bugs", 哪个部门的工单最多."""
        text = self._text
        for lead in compiled("<top_asked>").finditer(text):
            if (found := self._values_at(lead.end(), times=True, beside=True)) is None:
                continue
            per, end = found
            han = is_han(text[end - 1])
            behind = compiled(_MOST_OF_HAN).search(text, end) if han else compiled(_MOST_OF).match(text, end)
            if behind is None:
                continue
            if not han and (self._amount_at(behind.end()) or not self.documents_at(behind.end())):
                continue
            if han and not self.documents_at(end, behind.start()):
                continue
            done = compiled(_DONE_HAN).match(text, end) if han else None
            end = done.end() if done and self._says_nothing(done[0][:-1]) else end
            order: ListOrder = "most" if behind["most"] else "least"
            silent = han or self._says_nothing(behind["between"])
            rest = behind.span() if silent else (behind.end("between"), behind.end())  # "settled the most"
            between = "" if han else behind["between"]
            yield _AskedGroup(lead.start(), end, per, True, order, rest, between)
        yield from self._most_common()
        if who := compiled("<top_who>").search(text):
            behind = compiled(_MOST_OF_HAN).search(text, who.end())
            for group, end in self._doing(who.end()) if behind else ():
                of = compiled("<value_end!>").match(text, end)
                order = "most" if behind and behind["most"] else "least"
                stop = of.end() if of else end
                yield _AskedGroup(who.start(), stop, _of_field(group), True, order, behind.span() if behind else None)

    def _most_common(self) -> Iterator[_AskedGroup]:
        """Phrases such as "the most common cause of claims", 最常见的病因."""
        orders: tuple[tuple[str, ListOrder], ...] = (("top_common", "most"), ("top_rare", "least"))
        for phrase, order in orders:
            for found in compiled(rf"(?:<top_asked>\s*)?(?P<lead><{phrase}>)").finditer(self._text):
                for values in filter(None, (self._values_at(found.end(), beside=True),)):
                    per, end = values
                    behind = compiled(r"(?:<top_end>|<group_suffix>|\s+of(?![a-z]))*").match(self._text, end)
                    stop = behind.end() if behind else end
                    yield _AskedGroup(found.start(), stop, per, True, order)

    def _says_nothing(self, text: str) -> bool:
        """True for words that name no value or kind: "has had", "gives us"."""
        names = (*self._nouns, self._known.names, self._known.anywhere)
        return not any(each.of(word) for word in text.split() for each in names)

    def _amount_at(self, place: int) -> bool:
        """True where the name of a field of numbers stands that is no kind: "the most patients" of trials."""
        start = word_start(self._text, place)
        name = self._known.names.at(self._text, start)
        if name is None or any(names.at(self._text, start) for names in self._nouns):
            return False
        return amounts_of(self._known.groups[name.values[0]]) is not None

    def documents_at(self, start: int, end: int | None = None) -> bool:
        """True where a kind, a folder or a word for documents stands behind `start`, in English in the plural."""
        text = self._text[:end]
        for place in (each for each in _word_places(text) if each >= start):
            nouns = (names.at(text, place) for names in (self._nouns.kinds, self._nouns.folders))
            ends = [noun.end for noun in nouns if noun]
            ends += [found.end()] if (found := compiled("<noun>").match(text, place)) else []
            if any(is_plural(text[place:each]) for each in ends):
                return True
        return False

    def asked(self) -> Iterator[_AskedGroup]:
        """Phrases such as "which makes", "list all drivers", 有哪些出版社, 出版社有哪些."""
        text = self._text
        for lead in compiled("<group_asked>").finditer(text):
            found = self._values_at(lead.end())
            single = found and not is_han(lead[0][-1]) and self._values_at(lead.end(), plural=True) is None
            if found and not (single and not compiled(r"\s+(?:<group_aux_one>)(?![a-z])").match(text, found[1])):
                yield _AskedGroup(lead.start(), found[1], found[0], asked=True)
            yield from self._by_verb(lead.start(), lead.end())
        for lead in compiled("<group_listed>").finditer(text):
            found = self._values_at(lead.end())
            if found and compiled(r"(?:<head_tail>)*$").match(text, found[1]):
                yield _AskedGroup(lead.start(), found[1], found[0], asked=True)
        for behind in compiled("<group_asked_behind>").finditer(text):
            for start in range(max(0, behind.start() - _LONGEST), behind.start()):
                found = self._values_at(start) if is_han(text[start]) else None
                if found and found[1] == behind.start() and not self._in_value(start):
                    yield _AskedGroup(start, behind.end(), found[0], asked=True)

    def _by_verb(self, start: int, end: int) -> Iterator[_AskedGroup]:
        """Phrases such as "which ports did it call at": a noun in several names of fields, and the verb of one."""
        noun = compiled(r"\s*([a-z]{3,})(?![a-z])").match(self._text, end)
        if noun is None or not is_plural(noun[1]) or any(names.of(noun[1]) for names in self._nouns):
            return
        key = value_key(noun[1])
        named = [group for group in self._own if any(key in name.split()[-1:] for name in group.first)]
        named = named or [group for group in self._own if self._in_place(group)]
        for verb in _WORD.finditer(self._text, noun.end()):
            of_it = [group for group in named if any(of_one_word(verb[0], name) for name in group.first)]
            behind = compiled(r"\s+(?:<verb_tail>)(?=[\s?.!]*$)").match(self._text, verb.end())
            if len(of_it) == 1 and (behind or re.match(r"[\s?.!]*$", self._text[verb.end() :])):
                rest = (verb.start(), behind.end() if behind else verb.end())
                yield _AskedGroup(start, noun.end(), _of_field(of_it[0]), True, "", rest)

    def _in_value(self, place: int) -> bool:
        """True for the end of a value: 校区 in 北校区."""
        values = (self._known.anywhere.at(self._text, start) for start in range(max(0, place - _LONGEST), place))
        return any(value is not None and value.end > place for value in values)

    @staticmethod
    def _in_place(group: FieldGroup) -> bool:
        """True for a name that is a verb with what stands behind it: "lives in"."""
        return any(compiled(r"[a-z]+ (?:<verb_tail>)").fullmatch(name) for name in group.first)

    def counted(self, *, total: bool = False) -> Iterator[_AskedGroup]:
        """Phrases such as "per team", "grouped by team", "how many ... by team", 每个部门, 按部门统计.

        `total`: the sum, or the average, of each value is asked for.
        """
        counting = total or compiled("<counting>|<group_counting>").search(self._text) is not None
        for lead in compiled("<group_by>|<group_by_counted>").finditer(self._text):
            if compiled(_RANKED).search(self._text[: lead.start()]) and compiled("<sorted_unsure>").fullmatch(lead[0]):
                continue  # "the largest file by number of lines"
            if self._in_name(lead.start()) or _RATE.search(
                self._text[: lead.start()]
            ):  # "price per jar", "2 EUR per jar"
                continue
            found = self._values_at(lead.end(), times=True)
            ends = found and not self._text[found[1] :].strip(" ?.!") and not _ANY_ONE.match(self._text, lead.end())
            bare = ends and self.documents_at(0, lead.start())  # "bugs by status"
            unsure = is_han(lead[0][-1]) or compiled("<group_by_counted>").fullmatch(lead[0])
            if found and (counting or not unsure or bare):
                behind = compiled(r"\s*<group_end>").match(self._text, found[1])
                yield _AskedGroup(lead.start(), behind.end() if behind else found[1], found[0])

    def _in_name(self, place: int) -> bool:
        """True for a word inside the name of a field."""
        starts = (start for start in _word_places(self._text[:place]) if start >= place - _LONGEST_NAME)
        names = (self._known.names.at(self._text, start) for start in starts)
        return any(name is not None and name.end > place for name in names)

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
            for group in self.people if verb else ():
                if is_of(verb, group):
                    yield _AskedGroup(lead.start(), len(text), _of_field(group), asked=True)

    def placed(self) -> Iterator[_AskedGroup]:
        """Phrases such as "where were they found", 都在哪里."""
        for start, end, group, rest in asked_places(self._text, self._known):
            yield _AskedGroup(start, end, _of_field(group), True, "", rest)

    def _doing(self, start: int) -> Iterator[tuple[FieldGroup, int]]:
        """The field of what somebody does at `start`, and where that is said; else the only field of people."""
        text, known, verb = self._text, self._known, _WORD.match(self._text, start)
        for group, said, behind, _ in known.verbs(text):
            if found := compiled(f"(?:{behind})|(?:{said})").match(text, start):
                yield group, found.end()
        for concept, group in known.concepts.items():
            found = compiled(f"<behind_{concept}>|<said_{concept}>").match(text, start)
            if found and found[0] and self.people and known.is_person(group.first):
                yield group, found.end()
        if end := self._han_verb_end(start):
            yield from ((group, end) for group in self.people if is_of(text[start:end], group))
        if verb and len(self.people) == 1 and self.is_verb(verb[0]):
            done_to = compiled(r"\s*<group_done_to>(?=\s)").match(text, verb.end())
            yield self.people[0], done_to.end() if done_to else verb.end()

    def _han_verb_end(self, start: int) -> int:
        """Where a verb in Han characters ends: before a value, a noun or a particle, else behind two of them."""
        text, names = self._text, (*self._nouns, self._known.names, self._known.anywhere)
        if not is_han(text[start : start + 1]):
            return 0
        for end in range(start + 1, min(len(text), start + _LONGEST_VERB) + 1):
            if not is_han(text[end : end + 1]) or any(each.at(text, end) for each in names):
                return end
            if done := compiled("<tie_done>|<value_end!>").match(text, end):
                return done.end() if compiled("<tie_done>").match(text, end) else end
        return start + _USUAL_VERB

    def _values_at(
        self, place: int, *, times: bool = False, plural: bool = False, beside: bool = False
    ) -> tuple[Grouping, int] | None:
        """What the name at `place` groups by, and where it ends. `times`: also by months and years.

        `plural`: the name has to be in the plural; `beside`: documents are named beside it, so it may be a kind's, too.
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
        nouns = () if beside else (self._nouns.kinds, self._nouns.folders)
        if name is None or any((noun := names.at(text, start)) and noun.end >= name.end for names in nouns):
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
        if compiled(_NO_VERB).fullmatch(word):
            return False
        return not any(names.of(word) for names in (*self._nouns, self._known.names, self._known.anywhere))


def _word_places(text: str) -> list[int]:
    """Where words may begin: any Han character, and the first letter of any other word."""
    return [place for place in range(len(text)) if is_han(text[place]) or not text[place - 1 : place].isalnum()]


def _of_field(group: FieldGroup) -> Grouping:
    return Grouping(names=group.first, label=group.spelt[0])
