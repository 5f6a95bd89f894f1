"""How well a sentence answers a question: what it says, where it stands, and whether it holds the kind of answer.

The score is a sum of few features; the weights were fitted on labelled questions (docs/answers.md) and are the same for
all languages. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from shared.grounding.tokens import tokens_of
from shared.language import derived, derived_last, languages, question_language, sentence_in
from shared.language.answers import AnswerKind
from shared.language.names import bare, names_of
from shared.language.text import days_in, flat, fold, is_cjk_text, month_number, narrowed, term_set, terms
from shared.models import Hit
from workers.merge.pieces import QuotableSentence

#: Hits of the pool whose sentences may be quoted.
FARTHEST = 14
_FULL_TERMS = 6  # a shorter sentence rarely stands by itself, and counts in proportion
_CONTEXT = 0.5  # weight of the whole question's terms beside a subquestion's own
_NEAR_BEST = 0.6  # of the best score: such sentences can be the latest of several
_MIN_TITLE = 3  # fewest characters of a title that is looked for in other passages
#: A title of one word is a common word in most texts: only with a capital, inside a sentence, it names the page.
_SINGLE = re.compile(r"[A-Za-z]+")
_IN_SENTENCE = re.compile(r"(?<=[a-z0-9,)] )[A-Z]\w+")
#: A label: what kind of page a title says before its name ("Runbook: restore the database"), the name of a field.
_LABEL = re.compile(r"^[^:：]{1,24}[:：]\s*(?=\S)")
_DAY = re.compile(r"(?<![\w.-])\d{1,2} ([A-Z][a-z]{2,8})\b")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_FIELD_TERMS = 8  # a longer line behind a label is a statement
_BRIDGES = 3  # hits whose texts lead on to others though the question does not name their pages


class Weights(NamedTuple):
    """What each feature adds to a sentence's score; all features are between 0 and 1."""

    own: float = 1.6  # share of the question's terms that it holds
    inherited: float = 2.0  # the same, those of title and heading counted as its own
    rest: float = 2.0  # share of the terms that no title has, which the question asks about
    kind: float = 1.0  # it holds an answer of the kind that is asked for
    relation: float = 0.75  # and says what the question asks, if in other words
    rank: float = 2.8  # how well its hit did
    place: float = 0.7  # 1 / (1 + place in its hit)
    length: float = -0.8
    reached: float = 2.5  # the page that it stands in is named by a page that the question names
    reached_kind: float = 2.25
    named: float = 1.4  # the question names the page, and no other one
    compared: float = 1.1  # the question names this page and others
    compared_first: float = 1.3
    led_to: float = 0.85  # no page is named: the best hits name this one
    keyed: float = 2.0  # its term or its row's first cell is in the question
    defines: float = 1.5  # it says what the thing is that the question asks the meaning of
    newest: float = 1.5  # the latest of several is asked for, and this is it
    code: float = -1.0
    section: float = 2.5  # the heading says that it answers; one that answers something else costs as much
    field: float = -1.5  # a short field of a page that is not asked for
    foreign: float = -3.0  # it is not in the question's language


_WEIGHTS = Weights()
#: Kinds of answers that a sentence shows by what it holds.
_CHECKED = frozenset({
    AnswerKind.PERSON, AnswerKind.DATE, AnswerKind.DURATION, AnswerKind.MONEY, AnswerKind.VERSION, AnswerKind.NUMBER,
})  # fmt: skip

#: Of these, those that are told from any other text by a unit.
_TYPED = frozenset({AnswerKind.DATE, AnswerKind.DURATION, AnswerKind.MONEY})


def label_of(text: str) -> str:
    """The key of a line "Key: value", else ""."""
    found = _LABEL.match(text)
    return found[0].rstrip(" :：") if found else ""


def without_days(text: str) -> str:
    """Without days such as "1 October": their numbers count nothing."""
    return _DAY.sub(lambda found: "" if month_number(fold(found[1])) else found[0], text)


def points_back(text: str) -> bool:
    """True where `text` begins without a subject of its own: "It weighs"."""
    return (question_language(text) or languages()[0]).answers.pointing_back.match(text) is not None


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


class Pages:
    """The pages of the hits, as the question and the other hits name them.

    `far`: pages so surely meant by another one that they may be quoted however low they score.
    """

    def __init__(self, question: str, hits: Sequence[Hit]) -> None:
        asked, self.titles = flat(question), [flat(bare(hit.title)) for hit in hits]
        self.headings = [hit.heading for hit in hits]
        self.best = [hit.doc_id == hits[0].doc_id for hit in hits]
        self.title_terms = [term_set(hit.title) for hit in hits]
        self.leads = [term_set(f"{hit.title}\n{hit.heading}") for hit in hits]
        self.named = _named_in(asked, [hit.title for hit in hits])
        self.named_count = sum(self.named)
        self.days = [_days_of(hit) for hit in hits]
        texts = [_flat_text(hit.text) for hit in hits]
        words = [_capitals(hit.text) for hit in hits]
        self.reached, self.led_to, self.far = ([False] * len(hits) for _ in range(3))
        for at, title in enumerate(self.titles):
            if self.named[at] or title in asked or len(title.strip()) <= _MIN_TITLE:
                continue
            by = [other for other, text in enumerate(texts) if hits[other].doc_id != hits[at].doc_id and title in text]
            self.reached[at] = any(self.named[other] for other in by)
            self.led_to[at] = any(other < _BRIDGES for other in by)
            single = _SINGLE.fullmatch(bare(hits[at].title).strip())
            sure = single is None or any(single[0] in words[other] for other in by)
            self.far[at] = sure and (self.reached[at] or self.led_to[at])
        self.named_terms = frozenset[str]().union(
            *(lead for lead, named in zip(self.leads, self.named, strict=True) if named)
        )


def _days_of(hit: Hit) -> list[tuple[int, int, int]]:
    """The days, months and years that a page's date, title and heading name; 0 for what is not said."""
    named = f"{hit.date or ''}\n{hit.title}\n{hit.heading}"
    return days_in(named) or [(int(year), 0, 0) for year in _YEAR.findall(named)]


def _named_in(asked: str, titles: Sequence[str]) -> list[bool]:
    """Which titles a question (as `flat` gives it) names, without "Runbook: " before them, and none within another."""
    whole, short = ([flat(form(title)) for title in titles] for form in (bare, _unlabelled))
    described = {
        form for form, full in zip(short, whole, strict=True) if form != full and form.strip() and form in asked
    }
    return [
        short_form in described
        or (bool(form.strip()) and form in asked and not any(form in other and form != other for other in described))
        for form, short_form in zip(whole, short, strict=True)
    ]


def _unlabelled(title: str) -> str:
    return _LABEL.sub("", bare(title))


class AskedFor:
    """What a question asks for, as the languages read it."""

    def __init__(self, question: str) -> None:
        question = own_part(question)[1]
        self._low = low = narrowed(fold(question)).strip(" ?!.")
        self._question, self._flat = question, flat(question)
        self._table = (question_language(question) or languages()[0]).answers
        self.kinds = self._table.kinds(low)
        self.example = self._table.exemplified(low)
        owned = self._table.attributes(low)
        self.owned, self.attributes = bool(owned), owned + self._table.counts(low)
        self.state_of, self.as_of_now = self._table.state_of(low), self._table.now_in(low)
        self.newest = self._table.asks_for_newest(low)
        #: The terms of what the day of the latest one is asked of; empty for any other question.
        self.latest_of = term_set(self._table.latest_of(low)) if self.newest and AnswerKind.DATE in self.kinds else ()
        self._term, self._by_section = self._table.defined_term(low), self._table.asks_for_section(low)
        asked = [one for one in self._table.relations if any(_flat(word) in self._flat for word in one.asked)]
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
        label = _LABEL.match(text)
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


_flat, _flat_text = derived(flat), derived_last(512)(flat)


@derived_last(512)
def _capitals(text: str) -> frozenset[str]:
    """The words of a passage that are written with a capital inside a sentence."""
    return frozenset(_IN_SENTENCE.findall(text))


@derived_last(2048)
def _flat_names(text: str) -> tuple[str, ...]:
    """The names in a sentence, as `flat` gives them: each question about a pool asks for them."""
    return tuple(name for name in map(flat, names_of("", text)) if name.strip())


class SentenceScorer:
    """Scores the sentences of one pool for one query after the other."""

    def __init__(self, question: str, pages: Pages, sentences: Sequence[QuotableSentence]) -> None:
        self._question, self._pages = question, pages
        self._asked = tuple(terms(question))
        self._held = [one.words | one.lead for one in sentences]
        self._weights: dict[tuple[str, ...], dict[str, float]] = {}

    def scores(
        self, query: str, ranks: Sequence[float], sentences: Sequence[QuotableSentence]
    ) -> dict[QuotableSentence, float]:
        """Of these sentences; `ranks`: how well each hit did for the query, 0..1."""
        weights = {**self._own_weights(query)}
        if query != self._question:
            for term, weight in self._term_weights(self._asked).items():
                weights.setdefault(term, _CONTEXT * weight)
        need, cjk = asked_for(query), is_cjk_text(self._question)
        rests = [self._without(weights, lead) for lead in self._pages.leads]
        found = {
            one: self._score(one, weights, rests[one.number - 1], need, ranks[one.number - 1])
            + _WEIGHTS.foreign * (is_cjk_text(one.text) != cjk)
            for one in sentences
        }
        if need.newest:
            for one in _newest(found):
                found[one] += _WEIGHTS.newest
        return found

    def sharing(self, query: str, sentences: Sequence[QuotableSentence], least: float) -> list[QuotableSentence]:
        """Those that hold that share of the query's terms, themselves or in what they stand below."""
        weights = self._own_weights(query)
        return [one for one in sentences if not weights or share(weights, one.words | one.lead) >= least]

    def _without(self, weights: Mapping[str, float], lead: frozenset[str]) -> dict[str, float]:
        """The weights of the terms that neither this title and heading nor a page that is named has."""
        had = lead | self._pages.named_terms
        return {term: weight for term, weight in weights.items() if term not in had}

    def _score(
        self,
        one: QuotableSentence,
        weights: Mapping[str, float],
        rest: Mapping[str, float],
        need: AskedFor,
        rank: float,
    ) -> float:
        at, pages, add = one.number - 1, self._pages, _WEIGHTS
        lead, several = pages.leads[at], pages.named_count > 1
        shown, words = need.shown(one.text, pages.titles[at]), one.words | one.lead
        score = add.own * share(weights, one.words) + add.inherited * share(weights, words | lead)
        score += add.rest * share(rest, words) + add.rank * rank + add.place / (1 + one.place)
        score += add.length * min(1.0, len(one.words) / _FULL_TERMS)
        score += shown * (add.kind + add.relation * need.related(words))
        score += add.keyed * bool(one.subject and one.subject <= weights.keys()) + add.defines * need.defines(one.text)
        score += add.code * one.code + add.section * self._section(need, one)
        score += add.field * self._is_other_field(need, one, weights, shown)
        if pages.named[at]:
            first = add.compared_first if one.position == 0 else 0.0
            return score + (add.compared + first if several else add.named)
        if pages.reached[at]:
            return score + add.reached_kind * shown + (0.0 if several else add.reached)
        return score + (add.led_to if pages.led_to[at] and not pages.named_count else 0.0)

    def _section(self, need: AskedFor, one: QuotableSentence) -> float:
        """What the heading says of the question; what answers it elsewhere than on the best page may be of another."""
        at = one.number - 1
        found = need.section(self._pages.headings[at], one.text)
        return found if found < 0 or self._pages.best[at] else 0.0

    @staticmethod
    def _is_other_field(need: AskedFor, one: QuotableSentence, weights: Mapping[str, float], shown: float) -> bool:
        """True for a short "Name: value" whose name the question does not have, and no checked kind of answer."""
        label = _LABEL.match(one.text)
        if label is None or len(one.words) > _FIELD_TERMS or (need.checked and shown):
            return False
        return weights.keys().isdisjoint(terms(label[0])) and need.section(label[0]) <= 0

    def own_share(self, query: str, one: QuotableSentence) -> float:
        """The share of the query's own terms in a sentence and what it stands below."""
        words = one.words | one.lead | self._pages.leads[one.number - 1]
        return share(self._own_weights(query), words)

    def _own_weights(self, query: str) -> dict[str, float]:
        """Those of the query's own terms."""
        return self._term_weights(tuple(terms(own_part(query)[1])))

    def _term_weights(self, asked: tuple[str, ...]) -> dict[str, float]:
        """Root of the IDF over sentences: all chunks hold the topic. Terms that no sentence holds are left out."""
        if asked not in self._weights:
            counts = Counter(term for held in self._held for term in held.intersection(asked))
            total = len(self._held)
            self._weights[asked] = {term: math.sqrt(math.log(1 + total / count)) for term, count in counts.items()}
        return self._weights[asked]


def share(weights: Mapping[str, float], present: AbstractSet[str]) -> float:
    """The weighted share, 0..1, of the terms in `weights` that are `present`."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in present) / total if total > 0 else 0.0


def _newest(scores: Mapping[QuotableSentence, float]) -> list[QuotableSentence]:
    """Of the sentences near the best one, those with the latest day."""
    best = max(scores.values(), default=0.0)
    days = {one: max(days_in(one.text), default=None) for one, score in scores.items() if score >= _NEAR_BEST * best}
    latest = max((day for day in days.values() if day), default=None)
    return [one for one, day in days.items() if day and day == latest]
