"""Takes out of a question what it says of fields: "owned by Ada", "status: open", "open incidents". Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, Meant
from orchestrator.planning.lists.markers import OR_BEFORE, NamedValues, denied_behind, listed_values, negation_start
from orchestrator.planning.lists.words import GAP, Names, Sentence, compiled, listed, unique
from shared.language.text import HAN, is_han, value_key
from shared.models.enumeration import FieldFilter, Values

#: So far before a word its values are looked for, in characters; more of them than this are no list of values.
_LOOK_BACK = 80
_MOST_TAKEN = 12
_IS = r"\s*(?:(?P<not><field_is_not>)|(?P<holds><field_holds>)|(?P<is><field_is>))?\s*(?:<article_words>\s+)?"
_LEAD = r"<field_lead>\s*$"
_NONE = r"<field_none>\s*$"
_ANY = r"<field_any>\s*$"
_EMPTY = r"\s*<field_empty>"
_BOUND = r"\s*<bound>"
_AGENT = r"(?:<field_agent>)(?:\s+<field_agent>)?\s*$"
#: What is done to documents, or where they are: whose field has the value says which one is meant.
_SAID_ANY = r"(?:<said_any>)(?=\s|[^\x00-\x7f])"
_BEHIND_ANY = (
    rf"(?:<behind_any>)(?=\s*(?:$|[?.!,;:、{GAP}]|<behind_said>|<noun>|<negation>|<head_asked>|<field_said>|<tail>))"
)
#: Between a value and the name of its field behind it: "Ada as the owner", 张三为负责人.
_AS = r"\s*(?:<field_as>)\s*$"
_SAID = r"<field_said>\s*(?:<article_words>\s+)?(?:\s|<value_end!>)*$"
_BEFORE_NAME = r"(?:[\s\-]|<value_end!>)*$"
_SAID_END = r"\s*(?:$|[?.!,;。，；、\x1f\ue001]|<behind_said>|<negation_end>)"
_JOINED = rf"{GAP} *(?:,|<both>|<either>|<but_also>|<value_joint!>) *$"
_BY = r"<field_by>\s*$"
_SAID_OF = r"(?:<field_said>|<field_from>|<field_by>)\s*(?:<article_words>\s+)?$"
_BEFORE_THAT = r"<field_said>\s*$"
_FROM = r"<field_from>\s*(?:<article_words>\s+)?$"
_HAS = r"<field_has>\s*$"
_GOT = r"\s*<field_got>"
_PLACE_END = r"<behind_place>"
#: A word that may name documents, with all behind it taken out.
_SOME_NOUN = rf"\s+[a-z]+s\s*(?={GAP})"
_CLEAR = (
    r"(?:<non!>|<inner_frame>|<tail>|<both>|<either>|<value_joint!>|<field_said>|<field_from>|<field_agent>|<head_asked>"
    r"|<inside_noun>|<negation>|<order>)\s*$"
)
#: Stands for "'s" while values are looked for.
_OWNS = "\ue001"
#: What may stand between a bare value and the documents.
_BETWEEN = r"[\s、,\x1f]+|<behind_place>|<value_joint!>|<head_asked>|<both>|<either>|<field_said>|\ue001"
#: One character alone is a value only directly before documents, where it says nothing of a place or an amount.
_ONE_CHAR = r"(?!<tail>|<inner_frame>|<inside_noun>|<negation>|<either>|<both>)(?!<no_value_alone>)."
_EQUALS = re.compile(r"(?P<name>[\w\-]{1,40})(?P<is>!?==?)(?=\w)")
_POSSESSIVE = re.compile(r"(?<=\w)'s(?= )|(?<=s)'(?= )")
_ASKED = r"<asked_for>"
_WORD_BEGINS = re.compile(rf"(?<![a-z0-9_])(?=[a-z0-9])|(?=[{HAN}\ue000])")


def take_fields(sentence: Sentence, values: Values, kinds: Names, tags: Names, named: NamedValues) -> None:
    """What is said of fields that exist; values that do not are asked for all the same, and that is told."""
    if values.fields:
        taker = _FieldTaker(sentence, values, named, kinds, tags)
        taker.take_phrases()
        taker.take_names()
        taker.take_done()
        taker.take_bare()


class _FieldTaker:
    """One sentence while what it says of fields is taken out of it."""

    def __init__(self, sentence: Sentence, values: Values, named: NamedValues, kinds: Names, tags: Names) -> None:
        self._sentence, self._known, self._named = sentence, KnownFields(values), named
        self._kinds, self._tags = kinds, tags
        self._folders = Names(folder.rstrip("/").rpartition("/")[2] for folder in values.folders)

    def take_phrases(self) -> None:
        """Phrases that hold a field without its name: "unassigned", "owned by Ada", "does Ada own", 张三负责的."""
        for concept, group in self._known.concepts.items():
            self._each(f"<unset_{concept}>", partial(self._unset, group))
        for group, said, behind, unset in self._known.verbs(self._sentence.text):
            self._each(unset, partial(self._unset, group))
            self._each(said, partial(self._behind, group, unknown=True))
            self._each(behind, partial(self._before, group))
        for concept, group in self._known.concepts.items():
            self._each(f"<said_{concept}>", partial(self._behind, group, unknown=True))
            self._each(f"<behind_{concept}>", partial(self._before, group))
        for concept, group in self._known.concepts.items():
            self._each(f"<weak_{concept}>", partial(self._behind, group, unknown=False))

    def _each(self, template: str, take: Callable[[re.Match[str]], bool]) -> None:
        place = 0
        for _ in range(_MOST_TAKEN):
            found = compiled(template).search(self._sentence.text, place)
            if found is None:
                return
            place = 0 if take(found) else found.end()

    def _unset(self, group: FieldGroup, found: re.Match[str]) -> bool:
        if group.meant(found[0]):  # "unassigned" is a value of its own
            return False
        self._put(group, (), found.start(), found.end(), negated=True)
        return True

    def _behind(self, group: FieldGroup, found: re.Match[str], *, unknown: bool) -> bool:
        """The values behind "owned by"."""
        if not unknown and not self._documents_before(found.start()):
            return False
        place, denied = self._first_value(found.end())
        return self._values_from(group, found.start(), place, unknown=unknown, denied=denied)

    def _first_value(self, place: int) -> tuple[int, bool]:
        """Where the values behind `place` begin, and whether they are denied: "neither Ada nor Bo"."""
        text = self._sentence.text
        neither = compiled(r"\s*<field_neither>\s+").match(text, place)
        if neither and (nor := compiled("<nor>").search(text, neither.end(), neither.end() + _LOOK_BACK)):
            self._sentence.text = f"{text[: nor.start()]}{listed('one_of')[0]}{text[nor.end() :]}"
        article = compiled(r"\s*(?:<article_words>\s+)?").match(text, neither.end() if neither else place)
        return article.end() if article else place, neither is not None

    def _before(self, group: FieldGroup, found: re.Match[str]) -> bool:
        """The values before "owns", 负责."""
        text = self._sentence.text
        head = text[: found.start()].rstrip()
        negations = compiled("<negation>").finditer(text, max(0, len(head) - _LOOK_BACK), found.end())
        negated = next((each for each in negations if each.end() == len(head)), None)
        head = text[: negated.start()].rstrip() if negated else head
        if (before := self._values_ending(head, group.names)) is None:
            return False
        start, spelt = before
        if agent := self._ahead(_AGENT, start):
            start = agent.start()
        return self._take(group, spelt, start, found.end(), negated=negated is not None)

    def take_names(self) -> None:
        """Fields by their names: "status: open", "high priority", "without an owner", 负责人是张三."""
        self._sentence.text = _EQUALS.sub(self._spaced, self._sentence.text)
        place = taken = 0
        while taken < _MOST_TAKEN and (begins := _WORD_BEGINS.search(self._sentence.text, place)):
            start = begins.start()
            name = self._known.names.at(self._sentence.text, start)
            if name and self._whole(name.end) and self._named_at(name.values[0], start, name.end):
                place, taken = 0, taken + 1
            else:
                place = start + 1

    def _spaced(self, found: re.Match[str]) -> str:
        known = value_key(found["name"]) in self._known.groups
        return f"{found['name']} {found['is']} " if known else found[0]

    def _named_at(self, name: str, start: int, end: int) -> bool:
        group, text = self._known.groups[name], self._sentence.text
        lead = self._ahead(_LEAD, start)
        begun = lead.start() if lead else start
        link = compiled(_IS).match(text, end)
        if link is None or (self._in_words(begun) and not (lead or link["is"] or link["holds"])):
            return False
        if (is_empty := compiled(_EMPTY).match(text, end)) and not group.meant(is_empty[0]):
            self._put(group, (), begun, is_empty.end(), negated=True)
            return True
        joint = link["is"] or link["not"] or ""  # behind "has" a value must be known
        sure = bool(joint) and (lead is not None or not (joint.isascii() and joint[0].isalpha()))
        if self._values_from(group, begun, link.end(), unknown=sure, denied=bool(link["not"])):
            return True
        if not (joint or lead) and (self._kinds.at(text, start) or compiled("<noun>").match(text, start)):
            return False
        for between in (_BEFORE_NAME, _AS):
            if before := self._values_ending(compiled(between).sub("", text[:start], 1), group.names):
                lead = self._ahead(_LEAD, before[0]) or self._ahead(_AGENT, before[0])
                return self._take(group, before[1], lead.start() if lead else before[0], end)
        return self._named_alone(group, start, end)

    def _named_alone(self, group: FieldGroup, start: int, end: int) -> bool:
        """A name without a value: "without an owner", "that have an owner"."""
        text = self._sentence.text
        if not group.prominent and not re.search(r"\ban? $", text[:start]):
            return False
        if found := self._ahead(_NONE, start):
            behind = compiled(r"\s+<field_none_end>").match(text, end)
            self._put(group, (), found.start(), behind.end() if behind else end, negated=True)
        elif found := self._ahead(_ANY, start):
            begun = negation_start(self._sentence, found.start())
            self._put(group, (), begun, end, negated=begun < found.start())
        else:
            return False
        return True

    def take_done(self) -> None:
        """What somebody does with documents, where only the value says which field is meant: "treated by Ada"."""
        self._sentence.text = _POSSESSIVE.sub(f" {_OWNS}", self._sentence.text)
        self._each(_SAID_ANY, partial(self._behind, self._known.any, unknown=False))
        self._each(_BEHIND_ANY, partial(self._before, self._known.any))

    def take_bare(self) -> None:
        """Values alone: "open incidents", "incidents that are still open", "Ada's notes", 已解决的事故."""
        place = taken = 0
        while taken < _MOST_TAKEN and (begins := _WORD_BEGINS.search(self._sentence.text, place)):
            start = begins.start()
            end = self._bare_end(start)
            if end is None:
                place = start + 1
                continue
            spelt, _, stop = listed_values(self._sentence, start, self._known.bare, unknown=False)
            if stop < end or not all(self._known.bare.of(each) for each in spelt):
                value = self._known.bare.at(self._sentence.text, start)
                spelt, stop = [self._sentence.text[start : value.end if value else end]], end
            self._take_bare(spelt, start, stop)
            place, taken = 0, taken + 1
        self._sentence.text = self._sentence.text.replace(f" {_OWNS}", "'s")

    def _bare_end(self, start: int) -> int | None:
        """Where the bare value at `start` ends, if it is said of documents."""
        text = self._sentence.text
        value = self._known.bare.at(text, start)
        if value is None or not self._stands_alone(start, value.end):
            return None
        for others in (self._kinds, self._tags):
            if (other := others.at(text, start)) and other.end >= value.end:
                if others is self._tags and self._documents_follow(value.end):
                    self._named.read_as.append(f"{text[start : value.end]}: tag = {' or '.join(other.values)}")
                return None
        if self._documents_follow(value.end):
            return value.end
        if self._ahead(_HAS, start) and (got := compiled(_GOT).match(text, value.end)):
            return got.end()
        if self._is_said(start) and compiled(_SAID_END).match(text, value.end):
            return value.end
        sure = all(self._known.is_state(meant.names) for meant in self._known.holding(text[start : value.end]))
        return value.end if sure and compiled(_SOME_NOUN).match(text, value.end) else None

    def _stands_alone(self, start: int, end: int) -> bool:
        """True for whole words that are no bound, and are not sought in texts."""
        text = self._sentence.text
        if not self._whole(end) or compiled(_BOUND).match(text, end) or not self._clear_before(start):
            return False
        if end == start + 1 and not (compiled(_ONE_CHAR).match(text, start) and self._documents_follow(end)):
            return False
        return not self._in_words(start) or self._ahead(_FROM, start) is not None

    def _is_said(self, start: int) -> bool:
        """True when something before `start` says it of documents: a verb, a negation, documents themselves."""
        if negation_start(self._sentence, start) < start or self._documents_before(start):
            return True
        if self._ahead(_JOINED, start):
            return True
        by = self._ahead(_BY, start)
        led = self._ahead(_SAID, start) or self._ahead(_FROM, start)
        return led is not None or (by is not None and self._documents_before(by.start()))

    def _ahead(self, template: str, place: int) -> re.Match[str] | None:
        """What stands directly before `place`; the template ends with `$`."""
        return compiled(template).search(self._sentence.text, max(0, place - _LOOK_BACK), place)

    def _take_bare(self, spelt: list[str], start: int, end: int) -> None:
        meant = [found for each in spelt for found in self._known.holding(each)]
        by_names: dict[tuple[str, ...], list[str]] = {}
        for names, values in meant:
            by_names.setdefault(names, []).extend(values)
        names = unique([name for each in by_names for name in each])
        values = unique([value for each in by_names.values() for value in each])
        as_spelt = {value_key(each) for each in spelt} == {value_key(value) for value in values}
        if len(by_names) > 1 or not (self._known.is_state(names) and as_spelt):
            self._told(spelt, Meant(names, values))
        text = self._sentence.text
        end = place.end() if (place := compiled(_PLACE_END).match(text, end)) else end
        end = end + len(_OWNS) + 1 if text.startswith(f" {_OWNS}", end) else end
        said = self._ahead(_SAID_OF, start)
        if said and said[0].isascii() and self._documents_follow(end):  # "the number of open bugs"
            said = self._ahead(_BEFORE_THAT, start)
        if said and negation_start(self._sentence, start) == start:
            start = said.start()
        non = compiled("<non!>$").search(text[:start])
        self._append(Meant(names, values), non.start() if non else start, end, negated=non is not None)

    def _clear_before(self, start: int) -> bool:
        """True when no word without spaces goes on at `start`, which would say what the value is: 审核人是张三."""
        place = negation_start(self._sentence, start)
        for _ in range(_MOST_TAKEN):
            if not place or not is_han(self._sentence.text[place - 1]) or self._documents_before(place):
                return True
            if (found := self._ahead(_CLEAR, place)) is None:
                return False
            place = negation_start(self._sentence, found.start())
        return False

    def _documents_before(self, start: int) -> bool:
        """True when documents, or something taken out, stand directly before: 事故 in 哪些事故已解决."""
        head = compiled("<inside_noun>$").sub("", self._sentence.text[:start].rstrip(), 1)
        if not head or head.endswith(GAP) or compiled("<noun>$").search(head):
            return True
        return any(
            (known := self._kinds.at(head, place)) is not None and known.end == len(head)
            for place in range(max(0, len(head) - 20), len(head))
            if is_han(head[place]) or place == 0 or not head[place - 1].isalnum()
        )

    def _documents_follow(self, place: int) -> bool:
        """True when documents are named behind `place`, with nothing but values between."""
        text = self._sentence.text
        for _ in range(_MOST_TAKEN):
            if self._kinds.at(text, place) or compiled("<noun>").match(text, place):
                return True
            if (folder := self._folders.at(text, place)) and self._whole(folder.end):
                return True
            if between := compiled(_BETWEEN).match(text, place):
                place = between.end()
            elif (value := self._known.bare.at(text, place) or self._tags.at(text, place)) and value.end > place:
                place = value.end
            else:
                return False
        return False

    def _in_words(self, place: int) -> bool:
        """True when what stands at `place` is sought in texts: it is behind "about" or "mentions"."""
        text = self._sentence.text[:place]
        begun = text.rfind(GAP) + 1
        return compiled("<mention>|<about>").search(text, begun) is not None

    def _whole(self, end: int) -> bool:
        """True when a word ends there."""
        text = self._sentence.text
        return end >= len(text) or not (text[end - 1].isascii() and text[end].isascii() and text[end].isalnum())

    def _values_from(self, group: FieldGroup, start: int, place: int, *, unknown: bool, denied: bool = False) -> bool:
        spelt, _, end = listed_values(self._sentence, place, group.names, unknown=unknown)
        other = compiled(r"\s*").match(self._sentence.text, end)
        if spelt and other and not group.meant(spelt[0]) and self._known.names.at(self._sentence.text, other.end()):
            return False  # "owned by the payments team"
        return bool(spelt) and self._take(group, spelt, start, end, negated=denied)

    def _values_ending(self, head: str, names: Names) -> tuple[int, list[str]] | None:
        """The longest list of known values that `head` ends with, and where it begins."""
        for begins in _WORD_BEGINS.finditer(head, max(0, len(head) - _LOOK_BACK)):
            spelt, _, end = listed_values(self._sentence, begins.start(), names, unknown=False)
            if spelt and end >= len(head) and not self._sentence.text[len(head) : end].strip():
                return begins.start(), spelt
        return None

    def _take(self, group: FieldGroup, spelt: list[str], start: int, end: int, *, negated: bool = False) -> bool:
        """Ask for the values that were spelt; False, and nothing is taken, for a bound and for "who"."""
        asked = any(compiled(_ASKED).fullmatch(each) and not group.names.of(each) for each in spelt)
        if asked or compiled(_BOUND).match(self._sentence.text, end):
            return False
        names: list[str] = []
        values: list[str] = []
        told = len(self._named.read_as)
        for each in spelt:
            meant = group.meant(each)
            if meant is None:
                self._unknown(group, each)
                meant = Meant(group.first, (each,))
            elif self._doubtful(group, meant, each):
                self._told([each], meant)
            names += meant.names
            values += meant.values
        meant = Meant(unique(names), unique(values))
        if compiled("<all_of!>").search(self._sentence.text[start:end]) and len(spelt) > 1 and not negated:
            del self._named.read_as[told:]
            self._told(spelt, meant)
        self._append(meant, start, end, negated=negated)
        return True

    def _told(self, spelt: list[str], meant: Meant) -> None:
        self._named.read_as.append(f"{', '.join(spelt)}: {' or '.join(meant.names)} = {' or '.join(meant.values)}")

    @staticmethod
    def _doubtful(group: FieldGroup, meant: Meant, spelt: str) -> bool:
        """True where another field than the named one, or another value than the spelt one, was taken."""
        spelling = [value_key(value) for value in meant.values]
        return group.instead or bool({*meant.names} - {*group.first}) or spelling != [value_key(spelt)]

    def _unknown(self, group: FieldGroup, spelt: str) -> None:
        if not self._known.truncated:
            self._named.unknown.append((group.first[0], spelt, group.near(spelt)))

    def _put(self, group: FieldGroup, values: tuple[str, ...], start: int, end: int, *, negated: bool) -> None:
        self._append(Meant(group.first, values), start, end, negated=negated)

    def _append(self, meant: Meant, start: int, end: int, *, negated: bool) -> None:
        """Keep the filter, take its words out. A field that is missing is denied by its own words alone."""
        begun = negation_start(self._sentence, start) if meant.values else start
        negated = negated or begun < start or denied_behind(self._sentence.text, end)
        wanted = FieldFilter(names=meant.names, values=meant.values, negated=negated)
        if (joint := compiled(OR_BEFORE).search(self._sentence.text[:begun])) and self._named.fields:
            last = self._named.fields[-1]
            if (last.names, last.negated, negated) == (wanted.names, False, False) and last.values and wanted.values:
                wanted = wanted.model_copy(update={"values": unique([*last.values, *wanted.values])})
                self._named.fields.pop()
                begun = joint.start("joint")
        self._named.fields.append(wanted)
        self._sentence.take(begun, end)
