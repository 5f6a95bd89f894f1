"""The offline default: re-sorts by the question's own words. Needs no model, no network and no corpus statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

from shared.language.text import terms
from shared.models import Hit
from shared.providers.rerankers.base import LEXICAL_PART, Reranked, with_score
from shared.providers.rerankers.calibration import from_lexical

# The fused score counts as much as two of the four agreements. One setting for every corpus, taken as it is because the
# optimum is flat around it; tests/benchmarks/bench_lexical_rerank.py prints what it gives.
_FUSED = 2
_AGREEMENTS = 4
# What it counts that the best, second and third hit name a chunk's title; that the question does counts 1. It pays
# where pages are named after things and is neutral elsewhere; from one to five hits the gain differs by half a point.
_MENTIONS = (1.0, 0.5, 0.25)

_Key = TypeVar("_Key")
_NOTHING = dict(Reranked(reranker=""))


class LexicalReranker:
    """Scores in 0..1: the weighted mean of the scaled fused score and four ways in which question and chunk agree."""

    name = "lexical:v2"

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:  # noqa: ARG002 (milliseconds)
        """Re-sort by `lexical_scores`; the hits' scores are calibrated, and what they are made of is in their parts."""
        made_of = lexical_parts(query, hits)
        raw = [parts.score for parts in made_of]
        scores = from_lexical(raw).scores
        order = sorted(range(len(hits)), key=lambda at: -raw[at])
        ranked = tuple(with_score(hits[at], scores[at], raw[at], made_of[at].named()) for at in order)
        return Reranked.of_valid({**_NOTHING, "hits": ranked, "reranker": self.name, "documents": len(hits)})


class LexicalParts(NamedTuple):
    """What a lexical score is made of, each 0..1: (2 * fused + words + lead + pairs + title) / 6 is the score."""

    fused: float
    words: float
    lead: float
    pairs: float
    title: float

    @property
    def score(self) -> float:
        """The weighted mean."""
        return (_FUSED * self.fused + self.words + self.lead + self.pairs + self.title) / (_FUSED + _AGREEMENTS)

    def named(self) -> dict[str, float]:
        """As `Hit.parts` has them."""
        return dict(zip(_NAMED, self, strict=True))


_NAMED = tuple(f"{LEXICAL_PART}{name}" for name in LexicalParts._fields)


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """A chunk as terms: its title joined ("" without one), those of title and heading, all in order, all once."""

    title: str
    lead: frozenset[str]
    sequence: tuple[str, ...]
    words: frozenset[str]


def lexical_scores(query: str, hits: Sequence[Hit]) -> list[float]:
    """One score in 0..1 per hit: `LexicalParts.score`."""
    return [parts.score for parts in lexical_parts(query, hits)]


def lexical_parts(query: str, hits: Sequence[Hit]) -> list[LexicalParts]:
    """How question and each hit agree, as (fused, words, lead, pairs, title).

    fused: the fused score over the best one; words: IDF-weighted share of the question's terms in the chunk; lead: the
    same in its title and heading; title: 1 if the question names the title, less if one of the three best hits does;
    pairs: IDF-weighted share of the question's neighbouring term pairs that are neighbours in the chunk.
    The IDF is that of the candidates: on six sets it beats the corpus's own, since a term that all candidates share
    cannot tell them apart. A question of stop words only leaves the fused order as it is.
    """
    asked = terms(query)
    documents = [as_terms(hit.title, hit.heading, hit.text) for hit in hits]
    weights = candidate_idf(asked, [document.words for document in documents])
    pairs = {pair: weights[pair[0]] + weights[pair[1]] for pair in pairwise(asked)}
    total, total_pairs = sum(weights.values()), sum(pairs.values())
    question = _joined(asked)
    found = []
    for fused, document in zip(_scaled([hit.score for hit in hits]), documents, strict=True):
        present = document.words
        # Most chunks have both terms of no pair: then its neighbours need not be known.
        possible = any(first in present and second in present for first, second in pairs)
        close = _share(pairs, total_pairs, set(pairwise(document.sequence))) if possible else 0.0
        words, lead = _share(weights, total, present), _share(weights, total, document.lead)
        named = float(bool(document.title) and document.title in question)
        found.append(LexicalParts(fused, words, lead, close, named))
    if asked:
        mentioned = _mentioned(documents, [parts.score for parts in found])
        both = zip(found, mentioned, strict=True)
        found = [p._replace(title=mention) if mention > p.title else p for p, mention in both]
    return found


def candidate_idf(asked: Iterable[str], documents: Sequence[frozenset[str]]) -> dict[str, float]:
    """BM25's IDF of each asked term, ln(1 + (N - n + 0.5) / (n + 0.5)), over the candidates alone.

    In the order of the terms: a set has another one in each process, and sums over it other last digits.
    """
    total = len(documents)
    counts = {term: sum([term in document for document in documents]) for term in asked}
    return {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in counts.items()}


def _mentioned(documents: Sequence[LexicalDocument], scores: Sequence[float]) -> list[float]:
    """How well each document's title is named, as a run of terms, by the best documents of another title.

    The second fact of a question often stands in a page that the question cannot name, but the first page does.
    """
    mentioned = [0.0] * len(documents)
    best = sorted(range(len(documents)), key=lambda at: -scores[at])
    for weight, at in zip(_MENTIONS, best, strict=False):
        source = documents[at]
        text = _joined(source.sequence)
        for other, document in enumerate(documents):
            if document.title and document.title != source.title and document.title in text:
                mentioned[other] = max(mentioned[other], weight)
    return mentioned


@lru_cache(maxsize=1024)
def as_terms(title: str, heading: str, text: str) -> LexicalDocument:
    """A chunk's terms. Kept for a while: a leaf asks for the same ones several times."""
    named = terms(title)
    lead = [*named, *terms(heading)]
    sequence = (*lead, *terms(text))
    return LexicalDocument(_joined(named) if named else "", frozenset(lead), sequence, frozenset(sequence))


def _scaled(scores: Sequence[float]) -> list[float]:
    """Over the best score; shifted first where some are negative (cosines, logits), so all lie in 0..1."""
    low = min([0.0, *scores])
    top = max(scores, default=0.0) - low
    return [(score - low) / top if top > 0 else 0.0 for score in scores]


def _share(weights: Mapping[_Key, float], total: float, present: AbstractSet[_Key]) -> float:
    return sum([weight for key, weight in weights.items() if key in present]) / total if total > 0 else 0.0


def _joined(words: Iterable[str]) -> str:
    return f" {' '.join(words)} "
