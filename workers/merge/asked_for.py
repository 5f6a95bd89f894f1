"""What a question asks for: the kinds of answers, what is measured, the words that say it. Pure."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from shared.grounding.tokens import tokens_of
from shared.language import Language, derived, derived_last, languages, question_language, sentence_in
from shared.language.answers import AnswerKind, Relation
from shared.language.names import names_of
from shared.language.text import flat, fold, month_number, narrowed, term_set, terms

#: A label: what kind of page a title says before its name ("Runbook: restore the database"), the name of a field.
LABEL = re.compile(r"^[^:：]{1,24}[:：]\s*(?=\S)")
_DAY = re.compile(r"(?<![\w.-])\d{1,2} ([A-Z][a-z]{2,8})\b")
#: Kinds of answers that a sentence shows by what it holds.
_CHECKED = frozenset({
    AnswerKind.PERSON, AnswerKind.DATE, AnswerKind.DURATION, AnswerKind.MONEY, AnswerKind.VERSION, AnswerKind.NUMBER,
})  # fmt: skip

#: Of these, those that are told from any other text by a unit.
_TYPED = frozenset({AnswerKind.DATE, AnswerKind.DURATION, AnswerKind.MONEY})


def label_of(text: str) -> str:
    """The key of a line "Key: value", else ""."""
    found = LABEL.match(text)
    return found[0].rstrip(" :：") if found else ""


def without_days(text: str) -> str:
    """Without days such as "1 October": their numbers count nothing."""
    return _DAY.sub(lambda found: "" if month_number(fold(found[1])) else found[0], text)


def own_part(query: str) -> tuple[str, str]:
    """What a subquestion is about, and what it asks itself: rules write it as "Regarding “about”: asked"."""
    for pattern in _regarding():
        if found := pattern.fullmatch(query.strip()):
            return found[1], found[2]
    return "", query


@derived
def _regarding() -> list[re.Pattern[str]]:
    templates = (sentence_in(language, "regarding") for language in languages())
    return [re.compile(re.escape(one).replace(re.escape("{}"), "(.+)"), re.DOTALL) for one in templates]


def asked_parts(question: str) -> list[str]:
    """The parts of a question that asks several things, each with its own kind of answer; else empty."""
    return (question_language(question) or languages()[0]).answers.parts_of(question)


class AskedFor:
    """What a question asks for, as the languages read it."""

    def __init__(self, question: str) -> None:
        question = own_part(question)[1]
        self._low = low = narrowed(fold(question)).strip(" ?!.")
        self._question, self._flat = question, flat(question)
        language = question_language(question) or languages()[0]
        self._table = language.answers
        self.kinds = self._table.kinds(low)
        self.example = self._table.exemplified(low)
        owned = self._table.attributes(low)
        self.owned, self.attributes = bool(owned), owned + self._table.counts(low)
        self.state_of, self.as_of_now = self._table.state_of(low), self._table.now_in(low)
        self.newest = self._table.asks_for_newest(low)
        #: The terms of what the day of the latest one is asked of; empty for any other question.
        self.latest_of = term_set(self._table.latest_of(low)) if self.newest and AnswerKind.DATE in self.kinds else ()
        self._term, self._by_section = self._table.defined_term(low), self._table.asks_for_section(low)
        asked = [one for words, one in _relations(language) if any(word in self._flat for word in words)]
        self._said = frozenset(term for one in asked for word in one.said for term in terms(word))
        said = [one.said for one in asked if one.needed and AnswerKind.STEPS not in self.kinds]
        self.needed = [frozenset(term for word in words for term in terms(word)) for words in said]
        self._measure = self._table.measure_of(low) if AnswerKind.NUMBER in self.kinds else None

    @property
    def condition(self) -> bool:
        """True where "when" may ask for a condition, which has no date."""
        return AnswerKind.DATE in self.kinds and not self.newest and not self._table.asks_for_past(self._low)

    @property
    def steps(self) -> bool:
        """True where a way to do something is asked for."""
        return AnswerKind.STEPS in self.kinds

    @property
    def code(self) -> bool:
        """True where a line of code can be the answer: a command, or a path."""
        return self.steps or AnswerKind.PLACE in self.kinds

    def shown(self, text: str, title: str) -> float:
        """The share of the kinds that are asked for of which `text` holds an answer; `title`: as `flat` gives it."""
        kinds = self.kinds or (None,)
        return sum(self._shows(kind, text, title) for kind in kinds) / len(kinds)

    def _shows(self, kind: AnswerKind | None, text: str, title: str) -> bool:
        pattern = self._table.shown_by(kind) if kind else None
        if pattern is not None:
            found = pattern.search(fold(text)) is not None
            if kind is not AnswerKind.NUMBER or self._measure is None or not found:
                return found
            return pattern.search(fold(without_days(text))) is not None and self._measured(text)
        return any(name != title and name not in self._flat for name in _flat_names(text))

    def _measured(self, text: str) -> bool:
        """True where a number of `text` has a unit of what is measured, or `text` calls it by its name."""
        low = narrowed(fold(text))
        if self._measure is None or self._table.says_other(low, self._measure):
            return False
        if self._measure.named:
            return self._table.calls(low, self._measure)
        units = (unit.dimension for unit in tokens_of(text).counted.values())
        return self._table.calls(low, self._measure) or any(unit in self._measure.dimensions for unit in units)

    def typed(self, text: str) -> bool:
        """True where `text` holds what is asked for in a form that nothing else has: money, a duration, a unit."""
        typed = [kind for kind in self.kinds if kind in _TYPED or (kind is AnswerKind.NUMBER and self._measure)]
        return any(self._shows(kind, text, "") for kind in typed)

    @property
    def measures(self) -> bool:
        """True where a number of some dimension is asked for."""
        return self._measure is not None

    def explained_by(self, text: str) -> bool:
        """True where a cause is asked for and `text` gives one."""
        return self.kinds == (AnswerKind.CAUSE,) and self._shows(AnswerKind.CAUSE, text, "")

    @property
    def checked(self) -> tuple[AnswerKind, ...]:
        """The kinds of which a sentence that shows none is no answer."""
        return tuple(kind for kind in self.kinds if kind in _CHECKED)

    def answered_by(self, text: str, title: str) -> bool:
        """True where `text` may answer: it shows a kind that is asked for, or no kind is checked."""
        return not self.checked or any(self._shows(kind, text, title) for kind in self.checked)

    def section(self, heading: str, text: str = "") -> float:
        """1 below a heading that answers the question, -1 below one that answers another; else 0.

        A label before the text ("Cause: ...") counts as a heading.
        """
        if not self._by_section:
            return 0.0
        label = LABEL.match(text)
        names = (heading, label[0] if label else "")
        return next((found for name in names if (found := self._table.section(self._low, narrowed(fold(name))))), 0.0)

    def is_change(self, heading: str) -> bool:
        """True for a heading below which it is said what was changed."""
        return self._table.is_change(narrowed(fold(heading)))

    def related(self, words: AbstractSet[str]) -> bool:
        """True when the words say what the question asks."""
        return not self._said.isdisjoint(words)

    def defines(self, text: str) -> bool:
        """True when `text` says what the thing is that the question asks the meaning of."""
        return bool(self._term) and self._table.says_what(narrowed(fold(text)), self._term)


@derived_last(64)
def asked_for(question: str) -> AskedFor:
    """What a question asks for: each sentence that is chosen asks again."""
    return AskedFor(question)


@derived
def _relations(language: Language) -> list[tuple[list[str], Relation]]:
    """Each with the words of questions for it as `flat` gives them."""
    return [([flat(word) for word in one.asked], one) for one in language.answers.relations]


@derived_last(2048)
def _flat_names(text: str) -> tuple[str, ...]:
    """The names in a sentence, as `flat` gives them: each question about a pool asks for them."""
    return tuple(name for name in map(flat, names_of("", text)) if name.strip())
