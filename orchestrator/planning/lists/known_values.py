"""Reads known values of fields wherever they stand, with what ties them to the documents, and tells how. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.planning.lists.field_values import Meant, field_concepts, inflects_name, of_one_word
from orchestrator.planning.lists.fields import FieldTaker
from orchestrator.planning.lists.markers import is_negated, listed_values, negation_start
from orchestrator.planning.lists.ties import OWNED, WORD_BEGINS, Surroundings, Tie
from orchestrator.planning.lists.words import GAP, MAX_CHARS, KnownName, compiled, says_something, unique
from shared.language.text import is_han, terms, value_key

_MOST_TAKEN, _LEAST_HAN = 12, 2
_WORD = re.compile(r"[a-z][a-z'\-]*")
_SAID_END = r"\s*(?:$|[?.!,;。，；、\x1f\ue001]|<behind_said>|<negation_end>)"
_FROM = r"<field_from>\s*(?:<article_words>\s+)?$"
_JOINED = rf"{GAP} *(?:,|<both>|<either>|<but_also>|<value_joint!>) *$"
#: Fields whose words say only who has a document: any other person of it may be meant.
_ANYBODYS = ("owner", "assignee")


class KnownValues:
    """Takes the values out of one sentence.

    A name stands for its field anywhere; another word, such as a state, only where it is said of documents. The verb
    beside it may say which field is meant, else all that have the value are; both are told.
    """

    def __init__(self, taker: FieldTaker) -> None:
        self._taker, self._known = taker, taker.known
        self._around = Surroundings(taker.text, taker.nouns, self._known.anywhere)

    def take(self) -> None:
        """Take all of them, from the left."""
        place = taken = 0
        while taken < _MOST_TAKEN and (begins := WORD_BEGINS.search(self._taker.text, place)):
            if self._take_at(begins.start()):
                place, taken = 0, taken + 1
                self._around = Surroundings(self._taker.text, self._taker.nouns, self._known.anywhere)
            else:
                place = begins.start() + 1

    def _take_at(self, start: int) -> bool:
        text, names = self._taker.text, self._known.anywhere
        form = None
        value = names.at(text, start) or (form := self._form_at(start))
        if value is None or not self._readable(start, value.end, value.values):
            return False
        spelt, _, end = listed_values(self._taker.sentence, start, names, unknown=False)
        if end < value.end or form:
            spelt, end = list(form.values) if form else [text[start : value.end]], value.end
        tie = self._tie(spelt, start, end, sure=form is not None)
        meant = tie and self._meant(spelt, tie)
        if not (tie and meant) or self._of_another_field(
            f"{text[tie.start : start]} {text[end : tie.end]}", tie, meant
        ):
            return False
        every = compiled("<all_of!>").search(text[start:end]) if len(spelt) > 1 else None
        if every and not tie.negated and not is_negated(self._taker.sentence, start):
            apart = [self._meant([each], tie) for each in spelt]
            if not any(self._known.is_single(one.names) for one in apart) and len({one.names for one in apart}) == 1:
                self._taker.all_told(spelt, apart)
                for one in apart[1:]:
                    self._taker.put(one, negated=False)
                self._taker.append(apart[0], tie.start, tie.end, negated=False)
                return True
        if self._are_apart(spelt, tie):
            return self._take_each(spelt, tie, negated=tie.negated or is_negated(self._taker.sentence, start))
        said = " ".join(text[tie.start : tie.end].replace(GAP, " ").split())
        as_spelt = all(any(value_key(value) in value_key(each) for each in spelt) for value in meant.values)
        if tie.words or form or not (as_spelt and self._known.is_state(meant.names)):
            self._taker.told([said] if tie.words or form else spelt, meant)
        self._taker.guess(f"{text[tie.start : start]}{GAP}{text[end : tie.end]}", meant.names)
        if len({self._known.groups[name].first for name in meant.names}) > 1:
            self._taker.left_open(said, meant)
        self._taker.append(meant, tie.start, tie.end, negated=tie.negated or is_negated(self._taker.sentence, start))
        return True

    def _are_apart(self, spelt: list[str], tie: Tie) -> bool:
        """True for values of which each is of another field: "Ada and open"."""
        names = [name for each in spelt for name in self._meant([each], tie).names]
        return len(spelt) > 1 and len(names) > 1 and len({*names}) == len(names)

    def _take_each(self, spelt: list[str], tie: Tie, *, negated: bool) -> bool:
        """Each is a condition of its own. With "or" between nothing is taken."""
        if compiled("<either>").search(self._taker.text[tie.start : tie.end]):
            return False
        for each in spelt[1:]:
            meant = self._meant([each], tie)
            self._taker.told([each], meant)
            self._taker.put(meant, negated=negated)
        first = self._meant(spelt[:1], tie)
        self._taker.told(spelt[:1], first)
        self._taker.append(first, tie.start, tie.end, negated=negated)
        return True

    def _tie(self, spelt: list[str], start: int, end: int, *, sure: bool) -> Tie | None:
        """What ties the values to the documents; None where nothing does."""
        text, around = self._taker.text, self._around
        first = negation_start(self._taker.sentence, start)
        if is_han(text[start]):
            names = [name for meant in self._holding(spelt) for name in meant.names]
            tie = around.han(first, end, person=self._are_people(spelt), names=names)
        else:
            tie = around.latin(start, end)
            if tie and not (sure or tie.words or self._is_name(spelt, end) or self._said(tie, start)):
                return None
        if tie and (denied := compiled(" *<negation_end>").match(text, tie.end)):
            tie = tie._replace(end=denied.end(), negated=True)
        if tie and (non := compiled("<non!>$").search(text[: tie.start])):
            return tie._replace(start=non.start(), negated=True)
        return tie

    def _readable(self, start: int, end: int, values: Sequence[str]) -> bool:
        """True for a whole word that says something and is no kind, tag, folder or bound itself."""
        text, taker = self._taker.text, self._taker
        if all(inflects_name(text[start:end], value) for value in values):
            return False
        says = end - start >= _LEAST_HAN if is_han(text[start]) else says_something(text[start:end], taker.question)
        bound = compiled(r"\s*<bound>").match(text, end) or taker.is_bound([text[start:end]], start)
        if not says or not taker.whole(end) or bound:
            return False
        if taker.in_words(start) and not compiled(_FROM).search(text[:start]):
            return False
        if (tag := taker.nouns.tags.at(text, start)) and tag.end >= end and taker.documents_follow(end):
            taker.told([text[start:end]], Meant(("tag",), tag.values))
        return not any((noun := names.at(text, start)) and noun.end >= end for names in taker.nouns)

    def _form_at(self, start: int) -> KnownName | None:
        """A state in another form of its verb, behind "did we": reject for "rejected"."""
        word = _WORD.match(self._taker.text, start)
        if word is None or not compiled(r"<did>\s+$").search(self._taker.text[:start]):
            return None
        values = self._known.forms.get(" ".join(terms(word[0])), ())
        if word[0].endswith("ed") and not any(value_key(value) == value_key(word[0]) for value in values):
            return None  # what was opened need not be open
        return KnownName(values, word.end()) if values else None

    def _holding(self, spelt: list[str]) -> list[Meant]:
        return [meant for each in spelt for meant in self._known.holding(each)]

    def _meant(self, spelt: list[str], tie: Tie) -> Meant:
        """The fields that have the values; of several the one that the words around them are of."""
        found = self._holding(spelt)
        named = [meant for meant in found if any(of_one_word(word, name) for word in tie.words for name in meant.names)]
        if not named and len(found) > 1 and len(spelt) == 1:
            named = self._directed(found, tie)
        names = unique([name for meant in named or found for name in meant.names])
        return Meant(names, unique([value for meant in named or found for value in meant.values]))

    def _directed(self, found: list[Meant], tie: Tie) -> list[Meant]:
        """The fields that the small word before a value points to: "to Gdansk" of a destination."""
        text = self._taker.text[: tie.end]
        for way in ("to", "from"):
            if compiled(rf"<way_{way}>(?:<article_words>|\s)*$").search(text[: self._value_start(tie)]):
                return [one for one in found if any(compiled(f"(?:<named_{way}!>)").search(name) for name in one.names)]
        return []

    def _value_start(self, tie: Tie) -> int:
        """Where the value begins that is tied: behind the small words before it."""
        text, place = self._taker.text, tie.start
        while place < tie.end and self._known.anywhere.at(text, place) is None:
            place += 1
        return place

    def _of_another_field(self, text: str, tie: Tie, meant: Meant) -> bool:
        """True where the words around a value speak of a field that is not its own: "reviewed by Ada", 审核人是张三."""
        if any(is_han(word) and compiled("<role_end>").search(word) for word in tie.words):
            return True
        if any(of_one_word(word, name) for word in tie.words for name in meant.names):
            return False
        called = [key for word in tie.words if not is_han(word) for key in self._known.names.of(word)]
        if any(not {*self._known.groups[key].first} & {*meant.names} for key in called):  # "causes of the open claims"
            return True
        if not text.strip() or any(compiled(f"<said_{each}>|<behind_{each}>").search(text) for each in _ANYBODYS):
            return False
        return any(
            compiled(f"<said_{concept}>|<behind_{concept}>").search(text)
            for concept, names in field_concepts().items()
            if not {*names} & {*meant.names}
        )

    def _said(self, tie: Tie, start: int) -> bool:
        """True for "open incidents", "incidents that are open", "open or in Ghent"."""
        if self._taker.documents_follow(tie.end):
            return True
        if not compiled(_SAID_END).match(self._taker.text, tie.end):
            return False
        joined = compiled(_JOINED).search(self._taker.text[:start]) is not None
        return joined or tie.start < start or self._around.closed(start) or is_negated(self._taker.sentence, start)

    def _are_people(self, spelt: list[str]) -> bool:
        found = self._holding(spelt)
        return bool(found) and all(self._known.is_person(meant.names) for meant in found)

    def _is_name(self, spelt: list[str], end: int) -> bool:
        """True for what the question spells as a name, a value of several words, and people."""
        if compiled(OWNED).match(self._taker.text, end) or any(" " in each.strip() for each in spelt):
            return True
        asked = self._taker.question[:MAX_CHARS]
        patterns = (re.compile(rf"(?<!\w){re.escape(each)}(?!\w)", re.IGNORECASE) for each in spelt)
        found = (place for pattern in patterns for place in pattern.finditer(asked))
        return any(place[0][:1].isupper() and place.start() > 0 for place in found) or self._are_people(spelt)
