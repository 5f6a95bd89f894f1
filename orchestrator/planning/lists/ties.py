"""What around a known value ties it to the documents: "which Ada looks after", 由张三经手的. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.planning.lists.words import FIELD_NOUN, GAP, KnownName, Names, Nouns, compiled, listed
from shared.language.text import HAN, is_han, terms

WORD_BEGINS = re.compile(rf"(?<![a-z0-9_'])(?=[a-z0-9])|(?=[{HAN}])")
_WORD_BEFORE = re.compile(r"(?<![^\s(])([a-z](?:[a-z'\-]*[a-z'])?)\s*$")
_WORD_BEHIND = re.compile(r"\s*([a-z][a-z'\-]*)")
_ENDS = re.compile(rf"\s*(?:$|[{GAP}?!.,;:、，。；！？()])")
#: Words on one side of a value, Han characters that are one verb, and the fewest of a word.
_MOST_WORDS, _MOST_HAN, _LEAST_HAN = 6, 4, 2
#: So far before and behind a value its words are looked for, in characters.
_LOOK, _LOOK_HAN = 60, 12
#: A possessive; "\ue001" stands for one that was set apart.
OWNED = r" ?\ue001|'s?(?![a-z])"


class Tie(NamedTuple):
    """Where the words begin and end that belong to a value, those that say something, and whether they deny it."""

    start: int
    end: int
    words: tuple[str, ...] = ()
    negated: bool = False


class Surroundings:
    """A text in which nouns and values are known. A small word ties; one more, a verb, ties and is told."""

    def __init__(self, text: str, nouns: Nouns, values: Names) -> None:
        self.text, self._nouns, self._values = text, nouns, values
        known = ((place, name) for place in _begins(text) if (name := self._noun_at(place)))
        self._noun_spans = {name.end: place for place, name in known}

    def _noun_at(self, place: int) -> KnownName | None:
        found = (known for names in self._nouns if (known := names.at(self.text, place)))
        return max(found, key=lambda known: known.end, default=None)

    def closed(self, place: int) -> bool:
        """True where documents, something taken out, the question's own words, or nothing stands before `place`."""
        head = self.text[max(0, place - _LOOK) : place].rstrip()
        if not head or head.endswith((GAP, ",", ":")):
            return True
        end = len(self.text[:place].rstrip())
        return end in self._noun_spans or compiled("(?:<noun>|<head_lead>|<inside_noun>)$").search(head) is not None

    def begins_word(self, place: int) -> bool:
        """True where a word that joins, asks, or is a name itself begins."""
        joins = compiled("(?:<either>|<both>|<noun>|<except>|<tie_end>)(?![a-z])").match(self.text, place)
        return joins is not None or self._noun_at(place) is not None or self._values.at(self.text, place) is not None

    def latin(self, start: int, end: int) -> Tie | None:
        """The tie of a value in Latin letters; None where a word before or behind it says that it is no filter."""
        if owned := compiled(OWNED).match(self.text, end):
            behind = compiled(r"\s*<tie_small>(?=\s*(?:$|[?.!,]))").match(self.text, owned.end())
            return Tie(start, behind.end() if behind else owned.end())
        before = self._latin_before(start)
        if before is None:
            return None
        negated = any(compiled("<denies>").fullmatch(word) for word in self.text[before.start : start].split())
        if before.words or not self.closed(before.start):
            return Tie(before.start, end, before.words, negated)
        after = self._latin_behind(end)
        return after and Tie(before.start, after.end, after.words, negated or after.negated)

    def _latin_before(self, start: int) -> Tie | None:
        """Small words, and before them a verb that stands behind documents: "assigned to"."""
        begun, verb = start, ""
        for _ in range(_MOST_WORDS):
            found = _WORD_BEFORE.search(self.text, max(0, begun - _LOOK), begun)
            if found is None or self.begins_word(found.start(1)):
                break
            if compiled("<only_who>").fullmatch(found[1]):
                return None
            if compiled("(?:<tie_time>)$").search(
                self.text[: found.end(1)]
            ):  # "after the Boreas left" is of another one
                return None
            denies = compiled("<negation>").fullmatch(found[1]) and not compiled("<denies>").fullmatch(found[1])
            denies = denies or compiled("<denial_near>").fullmatch(found[1]) is not None
            if denies or compiled("<untied>").fullmatch(found[1]):
                if not denies and compiled("(?:<tie_of>) ").match(self.text, begun):  # "praised by Ada"
                    return None
                break
            if terms(found[1]) and not compiled("<tie_small>").fullmatch(found[1]):
                if verb or not self._behind_documents(found.start(1)):
                    break
                verb = found[1]
            elif verb and not compiled("<did>|<field_said>").fullmatch(found[1]):
                break
            begun = found.start(1)
        return Tie(begun, start, (verb,) if verb else ())

    def _behind_documents(self, place: int) -> bool:
        """True for what has only small words between it and documents before it."""
        for _ in range(_MOST_WORDS):
            if self.closed(place):
                return True
            found = _WORD_BEFORE.search(self.text, max(0, place - _LOOK), place)
            if found is None or terms(found[1]):
                return False
            place = found.start(1)
        return False

    def _latin_behind(self, end: int) -> Tie | None:
        """A verb with small words up to the end of the clause; nothing of it where more stands there."""
        place, words, denied, last = end, list[str](), False, ""
        stative = compiled(r"\s*<is_so>(?![a-z])").match(self.text, end) is not None
        for _ in range(_MOST_WORDS):
            found = _WORD_BEHIND.match(self.text, place)
            if _ENDS.match(self.text, place) or (words and found and self.begins_word(found.start(1))):
                tied = last in listed("tie_prepositions") or compiled("<tie_participle>").fullmatch(last)
                other = found and self._values.at(self.text, found.start(1)) and last in listed("tie_prepositions")
                if (stative and words and not tied) or other:  # "for the clinic are urgent", "at sea bound for Kiel"
                    return Tie(end, end)
                return Tie(end, place, tuple(words), denied)
            if found is None or self.begins_word(found.start(1)):
                break
            if compiled("<untied>").fullmatch(found[1]):
                return None
            denied = denied or compiled("<denies>").fullmatch(found[1]) is not None
            last = found[1]
            words += [] if _is_small(found[1]) or compiled("<denies>").fullmatch(found[1]) else [found[1]]
            if len(words) > 1:
                break
            place = found.end()
        return Tie(end, end)

    def han(self, start: int, end: int, *, person: bool, names: Sequence[str] = ()) -> Tie | None:
        """The tie of a value in Han characters; what somebody does may be any verb of few characters.

        `names`: of the fields that have the value; one character of these is a verb, too: 告 of 被告.
        """
        if non := compiled("<non!>$").search(self.text[:start]):
            return Tie(start, self._han_end(end), negated=non is not None)
        begun = self._han_begin(start)
        left = self.text[begun:start]
        lead = compiled("(?:<tie_small>)*$").search(left)
        small = lead[0] if lead else ""
        verb = left.removesuffix(small)
        if compiled("^(?:<denial_near>)").search(verb):
            return None
        denied = compiled("<denies>").fullmatch(verb) is not None
        verb = "" if denied else verb
        alone = not verb or (len(verb) <= _MOST_HAN and not compiled("<untied>").search(verb))
        if place := compiled("<behind_place>").match(self.text, end):
            end = place.end()
        stop, behind, denied_behind = self._han_behind(end, person=person)
        if not person:
            cut = not alone and stop < self._han_end(end)
            of_field = any(verb in name for name in names)
            if cut or (0 < len(verb) < _LEAST_HAN and alone and not (small or of_field)):
                return None
        words = tuple(filter(None, (verb if alone else "", behind)))
        return Tie(begun if alone else start - len(small), stop, words, denied or denied_behind)

    def _han_behind(self, end: int, *, person: bool) -> tuple[int, str, bool]:
        """Where a short verb behind a value ends, the verb, and whether it is denied: 没参加."""
        stop = self._han_end(end)
        right = self.text[end:stop]
        denial = compiled("<negation>").match(right)
        verb = right[denial.end() :] if denial else right
        fits = len(verb) <= _MOST_HAN and not compiled("<untied>").search(verb)
        if not fits or (denial and not (person and verb)):
            return end, "", False
        return stop, verb, denial is not None

    def _han_begin(self, start: int) -> int:
        place = start
        while place > max(0, start - _LOOK_HAN) and is_han(self.text[place - 1]) and not self.closed(place):
            if compiled("(?:<tie_edge>|<head_asked>|<either>)$").search(self.text, max(0, place - _MOST_HAN), place):
                break
            place -= 1
        others = (self._values.at(self.text, each) for each in range(place, start))
        return max((other.end for other in others if other and other.end <= start), default=place)

    def _han_end(self, end: int) -> int:
        place = end
        while place < min(len(self.text), end + _LOOK_HAN) and is_han(self.text[place]):
            edge = compiled("<tie_edge>|<negation_end>|<tail>|<head_asked>|<mention>|<tie_stop>").match(
                self.text, place
            )
            noun = compiled(FIELD_NOUN).match(self.text, place)  # 悬疑剧有哪些
            if edge or noun or self.begins_word(place):
                break
            place += 1
        return place


def _begins(text: str) -> list[int]:
    return [found.start() for found in WORD_BEGINS.finditer(text)]


def _is_small(word: str) -> bool:
    return not terms(word) or compiled("<tie_small>|<frame>").fullmatch(word) is not None
