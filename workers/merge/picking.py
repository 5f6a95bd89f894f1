"""Which sentences of a pool answer a query best: coverage of its terms, novelty, rank and place. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from shared.language.text import flat, terms
from shared.models import MergedHit
from workers.merge.passages import Passage, passages

_NOVELTY, _LEAD, _RANK, _PLACE = 0.5, 0.3, 0.6, 0.1
_FULL_TERMS = 6  # a shorter sentence rarely stands by itself, and counts in proportion
_OPENING_HITS = 2  # the first sentence of the best hits may answer in other words
_LEAST_SHARE = 0.15
_WORTH = 0.55  # of the group's best sentence; what is weaker is left out
_ALIKE = 0.6  # Jaccard overlap of terms from which two sentences say the same
_CONTEXT = 0.5  # weight of the whole question's terms beside a subquestion's own


class Picker:
    """Picks sentences query by query, and never the same statement twice."""

    def __init__(self, question: str, hits: Sequence[MergedHit], *, joined: bool) -> None:
        """`joined`: a sentence brings the next one along."""
        self._question = terms(question)
        self._passages = passages(hits, joined=joined)
        self._leads = [frozenset(terms(f"{hit.title}\n{hit.heading}")) for hit in hits]
        self._words = [lead | frozenset(terms(hit.text)) for lead, hit in zip(self._leads, hits, strict=True)]
        self._lines = [passage.words for passage in self._passages]
        self._hits = hits
        self._nodes = [frozenset(source.node_id for source in hit.sources) for hit in hits]
        self.picked: list[Passage] = []

    def forget(self) -> None:
        """From now on, what was picked may be picked again."""
        self.picked = []

    def coverage(self, query: str, node_id: str | None = None) -> float:
        """Share, 0..1, of the query's terms in the hit that has most of them; 1 without terms.

        Looks at the hits of leaf `node_id` (None: all). Not weighted by the pool's IDF: in a pool that is all about the
        question, its own words would count nothing.
        """
        asked = frozenset(terms(query))
        found = [
            words for words, ids in zip(self._words, self._nodes, strict=True) if node_id is None or node_id in ids
        ]
        return max((len(asked & words) / len(asked) for words in found), default=0.0) if asked else 1.0

    def pick(self, query: str, node_id: str | None, most: int, holding: str = "") -> list[Passage]:
        """Up to `most` sentences for `query`, best first, from the hits of leaf `node_id` (None: of any leaf).

        Where some of them hold the words `holding`, from these alone.
        """
        weights = self._weights(terms(query))
        for term, weight in self._weights(self._question).items():
            weights.setdefault(term, _CONTEXT * weight)
        left = [p for p in self._passages if node_id is None or node_id in self._nodes[p.number - 1]]
        holders = [p for p in left if flat(holding) in flat(p.quote)] if holding else []
        left = holders or [p for p in left if share(weights, p.words) >= _LEAST_SHARE or _opens(p)]
        ranks = self._ranks(node_id)
        fixed = {(p.number, p.position): self._fixed(p, weights, ranks[p.number - 1]) for p in left}
        chosen: list[Passage] = []
        covered: set[str] = set()
        bar = 0.0
        while len(chosen) < most:
            left = [p for p in left if not any(_alike(p, other) or _touches(p, other) for other in self.picked)]
            values = {p: fixed[p.number, p.position] + _NOVELTY * share(weights, p.words - covered) for p in left}
            best = max(left, key=lambda p: (values[p], -p.number, -p.position), default=None)
            if best is None or values[best] < bar:
                break
            bar = bar or _WORTH * values[best]
            chosen.append(best)
            covered |= best.words
            self.picked.append(best)
        return chosen

    def _weights(self, asked: Sequence[str]) -> dict[str, float]:
        """Root of the IDF over sentences: all chunks of a pool hold the topic's words, but not all their sentences.

        Terms that no sentence holds are left out: they cannot tell sentences apart.
        """
        counts = Counter(term for words in self._lines for term in words.intersection(asked))
        return {term: math.sqrt(math.log(1 + len(self._lines) / count)) for term, count in counts.items()}

    def _ranks(self, node_id: str | None) -> list[float]:
        """How well each hit did, 0..1: among the leaf's own results, or in the pool."""
        if node_id is None:
            return [1 - at / len(self._hits) for at in range(len(self._hits))]
        scores = [max((s.score for s in hit.sources if s.node_id == node_id), default=0.0) for hit in self._hits]
        best = max(scores, default=0.0)
        return [score / best if best > 0 else 0.0 for score in scores]

    def _fixed(self, passage: Passage, weights: Mapping[str, float], rank: float) -> float:
        """What a passage is worth whatever else is picked; `rank` is how well its hit did."""
        own = share(weights, passage.words) * min(1.0, len(passage.words) / _FULL_TERMS)
        return (
            own
            + _LEAD * share(weights, self._leads[passage.number - 1])
            + _RANK * rank
            + _PLACE / (1 + passage.position)
        )


def share(weights: Mapping[str, float], present: AbstractSet[str]) -> float:
    """The weighted share, 0..1, of the terms in `weights` that are `present`."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in present) / total if total > 0 else 0.0


def _alike(one: Passage, other: Passage) -> bool:
    return len(one.words & other.words) >= _ALIKE * len(one.words | other.words)


def _touches(one: Passage, other: Passage) -> bool:
    """True for neighbours: they may share a sentence."""
    return one.number == other.number and abs(one.position - other.position) <= 1


def _opens(passage: Passage) -> bool:
    return passage.position == 0 and passage.number <= _OPENING_HITS and len(passage.words) >= _FULL_TERMS
