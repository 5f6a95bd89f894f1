"""Diversity of the results: no near-duplicates, few chunks of one document, several kinds of documents.

Near-duplicates are those within a document; workers/merge/dedup.py folds those of the merged pool.
"""

from __future__ import annotations

from collections import Counter
from math import inf

from shared.language import languages, question_language
from shared.language.text import fold, narrowed, shingles
from shared.settings import stages as s
from workers.search.stages.rescoring import similarity
from workers.search.state import Candidate, SearchState, Tools
from workers.shown_hits import most_of_a_kind

_SHINGLE = 4
#: Chunks of one document where edges are followed, in all and for each hop: neighbours in the anchor's own file stay.
_LINKED_CAP, _LINKED_PER_HOP = 10, 5
#: The same where it is asked how something is now: the log of a thing has a section for each day.
_STATE_CAP = 10


def limit(state: SearchState, options: s.LimitStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Keep the best."""
    return state.but(candidates=state.candidates[: options.limit or state.query.wanted])


def caps(state: SearchState, options: s.CapsStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """At most `per_doc` chunks of a document, one of each identical text, and `per_kind` of what is wanted per kind.

    Of the best candidate's document `best_doc` chunks stay: its sections answer together. Where it is asked how
    something is now, ten of each do. A kind is only capped while there are other kinds to fill its places. These are
    places among the candidates; in the results that are shown, `shown_hits` holds the share. What a named symbol leads
    to is all kept, and counts for its document and kind.
    """
    per_kind = most_of_a_kind(options.per_kind, state.query.wanted)
    per_doc = options.per_doc or min(_LINKED_CAP, _LINKED_PER_HOP * (state.query.depth or 1))
    if asks_for_state(state.query.text):
        per_doc = max(per_doc, _STATE_CAP)
    best_doc = max(per_doc, options.best_doc)
    docs: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    texts: set[str] = set()
    within: list[Candidate] = []
    beyond: list[Candidate] = []
    for candidate in state.candidates:
        hit = candidate.hit
        asked = hit.precedence < inf
        most = best_doc if hit.doc_id == state.candidates[0].hit.doc_id else per_doc
        if not asked and (docs[hit.doc_id] >= most or hit.text in texts):
            continue
        docs[hit.doc_id] += 1
        texts.add(hit.text)
        (within if asked or kinds[hit.kind] < per_kind else beyond).append(candidate)
        kinds[hit.kind] += 1
    return state.but(candidates=(*within, *beyond))


def asks_for_state(question: str) -> bool:
    """True for a question how something is now."""
    table = (question_language(question) or languages()[0]).answers
    return bool(table.state_of(narrowed(fold(question)).strip(" ?!.")))


def dedup(state: SearchState, options: s.DedupStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Of near-duplicates within one document the best stays, and what a named symbol leads to."""
    kept: list[Candidate] = []
    by_doc: dict[str, list[Candidate]] = {}
    for candidate in state.candidates:
        same = by_doc.setdefault(candidate.hit.doc_id, [])
        asked = candidate.hit.precedence < inf
        if asked or all(pair_similarity(candidate, other) < options.threshold for other in same):
            same.append(candidate)
            kept.append(candidate)
    return state.but(candidates=tuple(kept))


def mmr(state: SearchState, options: s.MmrStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Carbonell and Goldstein 1998: next is what maximises r * score - (1 - r) * similarity to what was taken.

    Scores are scaled by the best; the order changes, the scores stay what they were. What a named symbol leads to stays
    before all others.
    """
    rest = list(state.candidates[: options.limit])
    best = max((candidate.score for candidate in rest), default=0.0) or 1.0
    nearest = [0.0] * len(rest)
    taken: list[Candidate] = []
    while rest:
        values = [
            options.relevance * candidate.score / best - (1 - options.relevance) * near
            for candidate, near in zip(rest, nearest, strict=True)
        ]
        place = max(range(len(rest)), key=lambda n: (values[n], -n))
        chosen, near = rest.pop(place), nearest.pop(place)
        detail = {"value": values[place], "relevance": options.relevance, "best": best, "nearest": near}
        taken.append(chosen.plus("mmr", 0.0, **detail))
        nearest = [max(near, pair_similarity(chosen, other)) for other, near in zip(rest, nearest, strict=True)]
    taken.sort(key=lambda candidate: candidate.hit.precedence)
    return state.but(candidates=(*taken, *state.candidates[options.limit :]))


def pair_similarity(one: Candidate, other: Candidate) -> float:
    """Cosine where both have vectors, else the Jaccard overlap of shingles of 4 words: 0..1."""
    if one.hit.vector and other.hit.vector:
        return max(0.0, similarity(one.hit.vector, other.hit.vector))
    own, others = shingles(one.hit.text, _SHINGLE), shingles(other.hit.text, _SHINGLE)
    return len(own & others) / len(own | others) if own or others else 0.0
