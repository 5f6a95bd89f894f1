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
from itertools import pairwise
from typing import NamedTuple

from shared.language import derived_of_passages, languages, question_language
from shared.language.names import bare
from shared.language.text import days_in, flat, is_cjk_text, term_set, terms
from shared.models import Hit
from workers.merge.asked_for import LABEL, AskedFor, asked_for, own_part
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
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_FIELD_TERMS = 8  # a longer line behind a label is a statement
_BRIDGES = 3  # hits whose texts lead on to others though the question does not name their pages


class Weights(NamedTuple):
    """What each feature adds to a sentence's score; all features are between 0 and 1."""

    own: float = 1.6  # share of the question's terms that it holds
    inherited: float = 2.0  # the same, those of title and heading counted as its own
    before: float = 1.0  # the same of the sentence before, to which it points back: "It weighs"
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


def points_back(text: str) -> bool:
    """True where `text` begins without a subject of its own: "It weighs"."""
    return (question_language(text) or languages()[0]).answers.pointing_back.match(text) is not None


class Pages:
    """The pages of the hits, as the question and the other hits name them.

    `words`: the terms of each hit, with those of title and heading. `far`: pages so surely meant by another one that
    they may be quoted however low they score.
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
        read = [_read(hit.text) for hit in hits]
        self.words = [lead | one.terms for lead, one in zip(self.leads, read, strict=True)]
        self.reached, self.led_to, self.far = ([False] * len(hits) for _ in range(3))
        for at, title in enumerate(self.titles):
            if self.named[at] or title in asked or len(title.strip()) <= _MIN_TITLE:
                continue
            by = [n for n, one in enumerate(read) if hits[n].doc_id != hits[at].doc_id and title in one.flat]
            self.reached[at] = any(self.named[other] for other in by)
            self.led_to[at] = any(other < _BRIDGES for other in by)
            single = _SINGLE.fullmatch(bare(hits[at].title).strip())
            sure = single is None or any(single[0] in read[other].capitals for other in by)
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
    return LABEL.sub("", bare(title))


class _ReadPassage(NamedTuple):
    """`capitals`: words that are written with a capital inside a sentence."""

    flat: str
    terms: frozenset[str]
    capitals: frozenset[str]


@derived_of_passages
def _read(text: str) -> _ReadPassage:
    return _ReadPassage(flat(text), frozenset(terms(text)), frozenset(_IN_SENTENCE.findall(text)))


class SentenceScorer:
    """Scores the sentences of one pool for one query after the other."""

    def __init__(self, question: str, pages: Pages, sentences: Sequence[QuotableSentence]) -> None:
        self._question, self._pages = question, pages
        self._asked = tuple(terms(question))
        self._held = [one.words | one.lead for one in sentences]
        self._before = {  # a sentence about its page leaves nothing open to which "it" could point
            one: before.words
            for before, one in pairwise(sentences)
            if (before.number, before.position + 1) == (one.number, one.position)
            and points_back(one.text)
            and not points_back(before.text)
            and before.words.isdisjoint(pages.title_terms[one.number - 1])
        }
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
        score += add.before * shown * share(weights, self._before.get(one, frozenset()) - words - lead)
        score += add.rest * share(rest, words) + add.rank * rank + add.place / (1 + one.place)
        score += add.length * min(1.0, len(one.words) / _FULL_TERMS)
        score += shown * (add.kind + add.relation * need.related(words))
        score += add.keyed * bool(one.subject and one.subject <= weights.keys()) + add.defines * need.defines(one.text)
        command = need.steps and not weights.keys().isdisjoint(one.words)
        score += add.code * (one.code and not command) + add.section * self._section(need, one)
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
        label = LABEL.match(one.text)
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
