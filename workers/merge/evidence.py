"""How well a sentence answers a question: what it says, where it stands, and whether it holds the kind of answer.

The score is a sum of few features; the weights were fitted on labelled questions (docs/answers.md) and are the same for
all languages. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from shared.language import languages, question_language
from shared.language.names import bare, names_of
from shared.language.text import flat, fold, is_cjk_text, narrowed, terms
from shared.models import Hit

#: Hits of the pool whose sentences may be quoted.
FARTHEST = 14
_FULL_TERMS = 6  # a shorter sentence rarely stands by itself, and counts in proportion
_CONTEXT = 0.5  # weight of the whole question's terms beside a subquestion's own
_MIN_TITLE = 3  # fewest characters of a title that is looked for in other passages
_BRIDGES = 3  # hits whose texts lead on to others though the question does not name their pages


@dataclass(frozen=True, slots=True)
class QuotableSentence:
    """A sentence, a part of a long one, or a table row: the `position`-th (from 0) of the hit `number` (from 1).

    `quote` is a verbatim slice of the hit's text, `text` the same as it is shown, `words` its terms.
    """

    number: int
    position: int
    quote: str
    text: str
    words: frozenset[str]


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
    foreign: float = -3.0  # it is not in the question's language


_WEIGHTS = Weights()


class Pages:
    """The pages of the hits, as the question and the other hits name them."""

    def __init__(self, question: str, hits: Sequence[Hit]) -> None:
        asked, self.titles = flat(question), [flat(bare(hit.title)) for hit in hits]
        self.leads = [frozenset(terms(f"{hit.title}\n{hit.heading}")) for hit in hits]
        self.named = [bool(title.strip()) and title in asked for title in self.titles]
        self.named_count = sum(self.named)
        texts = [flat(hit.text) for hit in hits]
        self.reached, self.led_to = [False] * len(hits), [False] * len(hits)
        for at, title in enumerate(self.titles):
            if self.named[at] or len(title.strip()) <= _MIN_TITLE:
                continue
            by = [other for other, text in enumerate(texts) if hits[other].doc_id != hits[at].doc_id and title in text]
            self.reached[at] = any(self.named[other] for other in by)
            self.led_to[at] = any(other < _BRIDGES for other in by)
        self.named_terms = frozenset[str]().union(
            *(lead for lead, named in zip(self.leads, self.named, strict=True) if named)
        )


class AskedFor:
    """What a question asks for, as the languages read it."""

    def __init__(self, question: str) -> None:
        low = narrowed(fold(question))
        self._question, self._flat = question, flat(question)
        self._table = (question_language(question) or languages()[0]).answers
        self.kind = self._table.kind(low.strip(" ?!."))
        self._pattern = self._table.shown_by(self.kind) if self.kind else None
        asked = (one for one in self._table.relations if any(flat(word) in self._flat for word in one.asked))
        self._said = frozenset(term for one in asked for word in one.said for term in terms(word))

    def shown(self, text: str, title: str) -> bool:
        """True when `text` holds an answer of that kind; `title`: of its page, as `flat` gives it."""
        if self._pattern is not None:
            return self._pattern.search(fold(text)) is not None
        names = (flat(name) for name in names_of("", text))
        return any(name.strip() and name != title and name not in self._flat for name in names)

    def related(self, words: AbstractSet[str]) -> bool:
        """True when the words say what the question asks."""
        return not self._said.isdisjoint(words)


class SentenceScorer:
    """Scores the sentences of one pool for one query after the other."""

    def __init__(self, question: str, pages: Pages, sentences: Sequence[QuotableSentence]) -> None:
        self._question, self._pages, self._sentences = question, pages, sentences
        self._asked = terms(question)

    def scores(
        self, query: str, ranks: Sequence[float], sentences: Sequence[QuotableSentence]
    ) -> dict[QuotableSentence, float]:
        """Of these sentences; `ranks`: how well each hit did for the query, 0..1."""
        weights = self._term_weights(terms(query))
        if query != self._question:
            for term, weight in self._term_weights(self._asked).items():
                weights.setdefault(term, _CONTEXT * weight)
        need, cjk = AskedFor(query), is_cjk_text(query)
        rests = [self._without(weights, lead) for lead in self._pages.leads]
        return {
            one: self._score(one, weights, rests[one.number - 1], need, ranks[one.number - 1])
            + _WEIGHTS.foreign * (is_cjk_text(one.text) != cjk)
            for one in sentences
        }

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
        shown = need.shown(one.text, pages.titles[at])
        score = add.own * share(weights, one.words) + add.inherited * share(weights, one.words | lead)
        score += add.rest * share(rest, one.words) + add.rank * rank + add.place / (1 + one.position)
        score += add.length * min(1.0, len(one.words) / _FULL_TERMS)
        score += shown * (add.kind + add.relation * need.related(one.words))
        if pages.named[at]:
            first = add.compared_first if one.position == 0 else 0.0
            return score + (add.compared + first if several else add.named)
        if pages.reached[at]:
            return score + add.reached_kind * shown + (0.0 if several else add.reached)
        return score + (add.led_to if pages.led_to[at] and not pages.named_count else 0.0)

    def _term_weights(self, asked: Sequence[str]) -> dict[str, float]:
        """Root of the IDF over sentences: all chunks hold the topic. Terms that no sentence holds are left out."""
        counts = Counter(term for one in self._sentences for term in one.words.intersection(asked))
        return {term: math.sqrt(math.log(1 + len(self._sentences) / count)) for term, count in counts.items()}


def share(weights: Mapping[str, float], present: AbstractSet[str]) -> float:
    """The weighted share, 0..1, of the terms in `weights` that are `present`."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in present) / total if total > 0 else 0.0
