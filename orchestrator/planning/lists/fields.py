"""Takes out of a question what it says of fields: "owned by Ada", "status: open", "open incidents". Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from orchestrator.planning.lists.field_values import FieldGroup, KnownFields, Meant
from orchestrator.planning.lists.markers import OR_BEFORE, NamedValues, denied_behind, listed_values, negation_start
from orchestrator.planning.lists.owners import unowned
from orchestrator.planning.lists.words import GAP, Names, Nouns, Sentence, compiled, listed, unique
from shared.language import reader_sentence
from shared.language.text import HAN, is_han, value_key
from shared.models.enumeration import FieldFilter

#: So far before a word its values are looked for, in characters; more of them than this are no list of values.
_LOOK_BACK = 80
_MOST_TAKEN, _LONGEST_KIND = 12, 5
_IS = (
    r"\s*(?:(?P<not><field_is_not>)|(?P<lacks><field_lacks>)|(?P<holds><field_holds>)|(?P<is><field_is>))?"
    r"\s*(?:<article_words>\s+)?"
)
_LEAD = r"<field_lead>\s*$"
_NONE = r"<field_none>\s*$"
_ANY = r"<field_any>\s*$"
_EMPTY = r"\s*<field_empty>"
_BOUND = r"\s*<bound>"
_BOUND_BEFORE = r"(?:<bound_before>)\s*$"
#: A word that may deny the value behind it, in a way that is not read.
_DENIAL_NEAR = r"(?:<denial_near>) *(?:(?:<denial_between>) *){0,4}$"
_AGENT = r"(?:<field_agent>)(?:\s+<field_agent>)?\s*$"
#: Between a value and the name of its field behind it: "Ada as the owner", 张三为负责人.
_AS = r"\s*(?:<field_as>)\s*$"
_BEFORE_NAME = r"(?:[\s\-]|<value_end!>)*$"
#: What may stand between a bare value and the documents.
_BETWEEN = r"[\s、,\x1f]+|<behind_place>|<value_joint!>|<head_asked>|<both>|<either>|<field_said>"
_EQUALS = re.compile(r"(?P<name>[\w\-]{1,40})(?P<is>!?==?)(?=\w)")
#: What stands between two values of which one is enough.
_JOINS = r"<both>|<either>|<but_also>|<all_of!>|<value_joint!>|[,、;]"
_ASKED = r"<asked_for>"
_WORD_BEGINS = re.compile(rf"(?<![a-z0-9_])(?=[a-z0-9])|(?=[{HAN}\ue000])")


class FieldTaker:
    """One sentence while what it says of fields is taken out of it."""

    def __init__(self, sentence: Sentence, known: KnownFields, nouns: Nouns, named: NamedValues) -> None:
        self.sentence, self.known, self.nouns, self._named = sentence, known, nouns, named

    @property
    def text(self) -> str:
        """What is left of the sentence."""
        return self.sentence.text

    @property
    def question(self) -> str:
        """As it was asked."""
        return self._named.question

    def take_phrases(self) -> None:
        """Phrases that hold a field without its name: "unassigned", "owned by Ada", "does Ada own", 张三负责的."""
        self.sentence.text = self._with_whole_states(self.text)
        for concept, group in self.known.concepts.items():
            self._each(f"<unset_{concept}>|<nobody> ?<behind_{concept}>", partial(self._unset, group))
        for key, stem in self.known.dated:
            if is_han(stem) and not self.known.anywhere.of(stem):  # 还没修复的 of 修复日期
                self._each(
                    rf"<state_denied>{re.escape(stem)}(?:<tie_done>)?(?=$|<state_end>)",
                    partial(self._unset, self.known.groups[key]),
                )
        for group, said, behind, unset in self.known.verbs(self.sentence.text):
            self._each(unset, partial(self._unset, group))
            self._each(said, partial(self._behind, group, unknown=True))
            self._each(behind, partial(self._before, group))
        for concept, group in self.known.concepts.items():
            self._each(f"<said_{concept}>", partial(self._behind, group, unknown=True))
            self._each(f"<behind_{concept}>", partial(self._before, group))
        for concept, group in self.known.concepts.items():
            self._each(f"<weak_{concept}>", partial(self._behind, group, unknown=False))

    def _with_whole_states(self, text: str) -> str:
        """The text with states whole that are denied by their first characters: 没结案 for 没结, of 已结案."""
        for state in self.known.reached:
            others = [other for other in self.known.reached if other != state]
            for length in range(1, len(state)):
                if not any(other.startswith(state[:length]) for other in others):
                    denied = compiled(rf"(?P<denied><state_denied>){re.escape(state[:length])}(?=$|<state_end>)")
                    text = denied.sub(rf"\g<denied>{state}", text)
        return text

    def _each(self, template: str, take: Callable[[re.Match[str]], bool]) -> None:
        place = 0
        for _ in range(_MOST_TAKEN):
            found = compiled(template).search(self.sentence.text, place)
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
        text = self.sentence.text
        neither = compiled(r"\s*<field_neither>\s+").match(text, place)
        if neither and (nor := compiled("<nor>").search(text, neither.end(), neither.end() + _LOOK_BACK)):
            self.sentence.text = f"{text[: nor.start()]}{listed('one_of')[0]}{text[nor.end() :]}"
        article = compiled(r"\s*(?:<article_words>\s+)?").match(text, neither.end() if neither else place)
        return article.end() if article else place, neither is not None

    def _before(self, group: FieldGroup, found: re.Match[str]) -> bool:
        """The values before "owns", 负责."""
        text = self.sentence.text
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
        self.sentence.text = _EQUALS.sub(self._spaced, self.sentence.text)
        place = taken = 0
        while taken < _MOST_TAKEN and (begins := _WORD_BEGINS.search(self.sentence.text, place)):
            start = begins.start()
            name = self.known.names.at(self.sentence.text, start)
            if name and self.whole(name.end) and self._named_at(name.values[0], start, name.end):
                place, taken = 0, taken + 1
            else:
                place = start + 1

    def _spaced(self, found: re.Match[str]) -> str:
        known = value_key(found["name"]) in self.known.groups
        return f"{found['name']} {found['is']} " if known else found[0]

    def _named_at(self, name: str, start: int, end: int) -> bool:
        group, text = self.known.groups[name], self.sentence.text
        lead = self._ahead(_LEAD, start)
        begun = lead.start() if lead else start
        link = compiled(_IS).match(text, end)
        if link is None or (self.in_words(begun) and not (lead or link["is"] or link["holds"] or link["lacks"])):
            return False
        if (is_empty := compiled(_EMPTY).match(text, end)) and not group.meant(is_empty[0]):
            self._put(group, (), begun, is_empty.end(), negated=True)
            return True
        joint = link["is"] or link["not"] or ""  # behind "has" a value must be known
        noun = any(names.at(text, start) for names in self.nouns[:2])  # 剧目在巡演
        sure = bool(joint) and not noun and (lead is not None or not (joint.isascii() and joint[0].isalpha()))
        if self._values_from(group, begun, link.end(), unknown=sure, denied=bool(link["not"] or link["lacks"])):
            return True
        if not (joint or lead) and (self.nouns.kinds.at(text, start) or compiled("<noun>").match(text, start)):
            return False
        for between in (_BEFORE_NAME, _AS):
            if before := self._values_ending(compiled(between).sub("", text[:start], 1), group.names):
                lead = self._ahead(_LEAD, before[0]) or self._ahead(_AGENT, before[0])
                return self._take(group, before[1], lead.start() if lead else before[0], end)
        return self._named_alone(group, start, end)

    def _named_alone(self, group: FieldGroup, start: int, end: int) -> bool:
        """A name without a value: "without an owner", "that have an owner"."""
        text = self.sentence.text
        if not group.prominent and not re.search(r"\ban? $", text[:start]):
            return False
        if found := self._ahead(_NONE, start):
            behind = compiled(r"\s+<field_none_end>").match(text, end)
            self._put(group, (), found.start(), behind.end() if behind else end, negated=True)
        elif found := self._ahead(_ANY, start):
            begun = negation_start(self.sentence, found.start())
            self._put(group, (), begun, end, negated=begun < found.start())
        else:
            return False
        return True

    def _ahead(self, template: str, place: int) -> re.Match[str] | None:
        """What stands directly before `place`; the template ends with `$`."""
        return compiled(template).search(self.sentence.text, max(0, place - _LOOK_BACK), place)

    def _documents_before(self, start: int) -> bool:
        """True when documents, or something taken out, stand directly before: 事故 in 哪些事故已解决."""
        head = compiled("<inside_noun>$").sub("", self.sentence.text[:start].rstrip(), 1)
        if not head or head.endswith(GAP) or compiled("<noun>$").search(head):
            return True
        return any(
            (known := self.nouns.kinds.at(head, place)) is not None and known.end == len(head)
            for place in range(max(0, len(head) - 20), len(head))
            if is_han(head[place]) or place == 0 or not head[place - 1].isalnum()
        )

    def documents_follow(self, place: int) -> bool:
        """True when documents are named behind `place`, with nothing but values between."""
        text = self.sentence.text
        for _ in range(_MOST_TAKEN):
            if self.nouns.kinds.at(text, place) or compiled("<noun>").match(text, place):
                return True
            if (folder := self.nouns.folders.at(text, place)) and self.whole(folder.end):
                return True
            if between := compiled(_BETWEEN).match(text, place):
                place = between.end()
            elif (
                value := self.known.anywhere.at(text, place) or self.nouns.tags.at(text, place)
            ) and value.end > place:
                spelt, place = text[place : value.end], value.end
                if spelt.endswith("s") and value_key(spelt) != spelt and compiled(r"\s*(?:$|[?.!])").match(text, place):
                    return True
            else:
                return False
        return False

    def in_words(self, place: int) -> bool:
        """True when what stands at `place` is sought in texts: it is behind "about" or "mentions"."""
        text = self.sentence.text[:place]
        begun = text.rfind(GAP) + 1
        known = self.known.anywhere.at(self.text, place)
        words = compiled("<mention>|<about>|<negation>(?P<denied>)").finditer(text, begun)
        found = next((word for word in words if word["denied"] is None and self._in_no_kind(word)), None)
        if known and found and compiled("<holding>").fullmatch(found[0]):  # "courses that use clay"
            return False
        return found is not None and not compiled("<value_end!>").search(text, found.end())

    def _in_no_kind(self, found: re.Match[str]) -> bool:
        """True for a phrase that is no part of the name of a kind or folder, as 谈 is in 访谈."""
        text = found.string
        places = range(max(0, found.start() - _LONGEST_KIND), found.start()) if is_han(found[0]) else ()
        names = [name for place in places for each in self.nouns[:2] if (name := each.at(text, place))]
        return not any(name.end >= found.end() for name in names)

    def whole(self, end: int) -> bool:
        """True when a word ends there."""
        text = self.sentence.text
        return end >= len(text) or not (text[end - 1].isascii() and text[end].isascii() and text[end].isalnum())

    def _values_from(self, group: FieldGroup, start: int, place: int, *, unknown: bool, denied: bool = False) -> bool:
        spelt, _, end = listed_values(self.sentence, place, group.names, unknown=unknown)
        other = compiled(r"\s*").match(self.sentence.text, end)
        if spelt and other and not group.meant(spelt[0]) and self.known.names.at(self.sentence.text, other.end()):
            return False  # "owned by the payments team"
        return bool(spelt) and self._take(group, spelt, start, end, negated=denied)

    def _values_ending(self, head: str, names: Names) -> tuple[int, list[str]] | None:
        """The longest list of known values that `head` ends with, and where it begins."""
        for begins in _WORD_BEGINS.finditer(head, max(0, len(head) - _LOOK_BACK)):
            spelt, _, end = listed_values(self.sentence, begins.start(), names, unknown=False)
            if spelt and end >= len(head) and not self.sentence.text[len(head) : end].strip():
                return begins.start(), spelt
        return None

    def _take(self, group: FieldGroup, spelt: list[str], start: int, end: int, *, negated: bool = False) -> bool:
        """Ask for the values that were spelt; False, and nothing is taken, for a bound and for "who"."""
        asked = any(compiled(_ASKED).fullmatch(each) and not group.names.of(each) for each in spelt)
        if asked or compiled(_BOUND).match(self.sentence.text, end) or self.is_bound(spelt, start):
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
                self.told([each], meant)
            names += meant.names
            values += meant.values
        meant = Meant(unique(names), unique(values))
        if compiled("<all_of!>").search(self.sentence.text[start:end]) and len(spelt) > 1 and not negated:
            del self._named.read_as[told:]
            if apart := self._each_alone(group, spelt):
                self.all_told(spelt, apart)
                for one in apart[1:]:
                    self.put(one, negated=False)
                meant = apart[0]
            else:
                self.told(spelt, meant)
        self.append(meant, start, end, negated=negated)
        return True

    def _each_alone(self, group: FieldGroup, spelt: list[str]) -> list[Meant]:
        """Each value by itself, where documents have several of that field: all of them are wanted."""
        apart = [meant for each in spelt if (meant := group.meant(each))]
        several = len(apart) == len(spelt) and not any(self.known.is_single(meant.names) for meant in apart)
        return apart if several else []

    def all_told(self, spelt: list[str], apart: list[Meant]) -> None:
        """Tell that a document must have each of these values."""
        every = reader_sentence("list_each_of", self.question, *(" + ".join(map(self._told, apart)),))
        self._named.read_as.append(f"{', '.join(spelt)}: {every}")

    def is_bound(self, spelt: list[str], start: int) -> bool:
        """True for a number that others are compared with, behind a word that was not understood: "under 20"."""
        number = any(char.isdecimal() for each in spelt for char in each)
        return number and compiled(_BOUND_BEFORE).search(self.sentence.text[:start]) is not None

    def guess(self, said: str, names: Sequence[str]) -> None:
        """Keep the words of `said` that are of no phrase, name or value: that they tie a value was guessed."""
        self._named.guessed += unowned(said, names, self.known, self.nouns)

    def told(self, spelt: list[str], meant: Meant) -> None:
        self._named.read_as.append(f"{', '.join(spelt)}: {self._told(meant)}")

    def left_open(self, said: str, meant: Meant) -> None:
        """Several fields have the value, and nothing says which of them is meant: that is told."""
        labels = reader_sentence("comma", self.question).join(self.known.spelt(meant.names))
        self._named.warnings.append(reader_sentence("list_field_open", self.question, said, labels))

    def _told(self, meant: Meant) -> str:
        return f"{' or '.join(self.known.spelt(meant.names))} = {' or '.join(meant.values)}"

    @staticmethod
    def _doubtful(group: FieldGroup, meant: Meant, spelt: str) -> bool:
        """True where another field than the named one, or another value than the spelt one, was taken."""
        spelling = [value_key(value) for value in meant.values]
        return group.instead or bool({*meant.names} - {*group.first}) or spelling != [value_key(spelt)]

    def _unknown(self, group: FieldGroup, spelt: str) -> None:
        if not self.known.truncated:
            self._named.unknown.append((group.spelt[0], spelt, group.near(spelt)))

    def _put(self, group: FieldGroup, values: tuple[str, ...], start: int, end: int, *, negated: bool) -> None:
        yes, no = self.known.flag(group) if not values else ((), ())
        if yes:  # "without an escort" of a field that says no
            wanted = FieldFilter(names=group.first, values=no if negated and no else yes, negated=negated and not no)
            self._named.fields.append(wanted)
            self.told([self.sentence.text[start:end].strip()], Meant(group.first, wanted.values))
            self.sentence.take(start, end)
            self._named.taken[self.sentence.takes] = wanted
            return
        self.append(Meant(group.first, values), start, end, negated=negated)

    def put(self, meant: Meant, *, negated: bool) -> None:
        """Keep the filter; its words stay."""
        self._named.fields.append(FieldFilter(names=meant.names, values=meant.values, negated=negated))

    def append(self, meant: Meant, start: int, end: int, *, negated: bool) -> None:
        """Keep the filter, take its words out. A field that is missing is denied by its own words alone."""
        begun = negation_start(self.sentence, start) if meant.values else start
        negated = negated or begun < start or denied_behind(self.sentence.text, end)
        if not negated and meant.values and (near := compiled(_DENIAL_NEAR).search(self.sentence.text[:begun])):
            self._named.left.append(" ".join(self.sentence.text[near.start() : end].replace(GAP, " ").split()))
            self._named.read_as[:] = [each for each in self._named.read_as if not each.endswith(self._told(meant))]
            self.sentence.take(near.start(), end)
            return
        wanted = FieldFilter(names=meant.names, values=meant.values, negated=negated)
        if (joint := compiled(OR_BEFORE).search(self.sentence.text[:begun])) and self._named.fields:
            last = self._named.fields[-1]
            if (last.names, last.negated, negated) == (wanted.names, False, False) and last.values and wanted.values:
                wanted = wanted.model_copy(update={"values": unique([*last.values, *wanted.values])})
                self._named.fields.pop()
                begun = joint.start("joint")
        self._guess_joint(wanted, begun, end)
        self._named.fields.append(wanted)
        self.sentence.take(begun, end)
        self._named.taken[self.sentence.takes] = wanted

    def _guess_joint(self, wanted: FieldFilter, begun: int, end: int) -> None:
        """Two values of a field of which a document has one, with no word that joins them: "from A to B"."""
        others = [one for one in self._named.fields if one.names == wanted.names and one.values and not one.negated]
        if wanted.negated or not wanted.values or not others or not self.known.is_single(wanted.names):
            return
        text = self.text[self.text.rfind(GAP, 0, begun) + 1 : end]
        behind = self.text[end : self.text.find(GAP, end) + 1]  # of values that are read from the right
        if not any(compiled(_JOINS).search(part) for part in (text, behind)):
            self._named.guessed.append(" ".join(self.text[begun:end].replace(GAP, " ").split()))
