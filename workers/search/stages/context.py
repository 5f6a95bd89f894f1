"""Neighbours of the best hits by their vectors, and the part of a hit's text that fits the question best."""

from __future__ import annotations

import re
from itertools import pairwise

from shared.language.text import terms
from shared.models import Hit
from shared.settings import stages as s
from shared.store import DENSE, to_filter
from workers.search.stages.rescoring import similarity
from workers.search.state import Candidate, SearchState, Tools, by_score

_SENTENCE_END = re.compile(r"[.!?](?=\s)\s*|[。！？\n]\s*")


def neighbours(state: SearchState, options: s.NeighboursStage, tools: Tools) -> SearchState:
    """Add neighbours of the best hits, one batched call a layer. They compete by their cosine to the question.

    A neighbour's score is its cosine times the lowest ratio of score to cosine among the arms' own hits, so that it
    never passes a hit of the arms with the same cosine.
    """
    if not state.vector:
        return state.skip("no vector of the question")
    depth = options.depth or tools.settings.multi_query.search_depth
    branch = options.branch or tools.settings.multi_query.branch_limit
    known = {candidate.hit.chunk_id: candidate for candidate in state.candidates}
    layer = [candidate.hit for candidate in state.candidates if candidate.hit.vector][:branch]
    cosines = [(one.score, similarity(state.vector, one.hit.vector)) for one in state.candidates]
    ratio = min((score / cosine for score, cosine in cosines if cosine > 0), default=0.0)
    added: list[Candidate] = []
    for number in range(1, depth):
        fresh = _neighbours_of(layer, known, state, options, tools)
        if not fresh:
            break
        scored = by_score([_scored(hit, state, ratio, number) for hit in fresh])
        known |= {candidate.hit.chunk_id: candidate for candidate in scored}
        added += scored
        layer = [candidate.hit for candidate in scored[:branch]]
    return state.but(candidates=by_score([*state.candidates, *added]))


def _neighbours_of(
    seeds: list[Hit], known: dict[str, Candidate], state: SearchState, options: s.NeighboursStage, tools: Tools
) -> list[Hit]:
    store, _ = tools.need_store()
    common = tools.request(to_filter(state.query.filters), options.limit)
    requests = [common.model_copy(update={"query": list(hit.vector), "using": DENSE}) for hit in seeds]
    found = {hit.chunk_id: hit for hits in store.query(requests) for hit in hits} if requests else {}
    return [hit for chunk_id, hit in found.items() if chunk_id not in known]


def _scored(hit: Hit, state: SearchState, ratio: float, layer: int) -> Candidate:
    cosine = similarity(state.vector, hit.vector)
    score = ratio * max(0.0, cosine)
    found = hit.model_copy(update={"parts": {"dense": cosine, "fused": score}})
    return Candidate(found, 0.0).plus("neighbours", score, cosine=cosine, layer=float(layer))


def enrich(state: SearchState, options: s.EnrichStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Give every candidate a snippet."""
    question = frozenset(terms(state.query.text))
    candidates = []
    for candidate in state.candidates:
        shown = snippet(candidate.hit.text, question, options.chars)
        candidates.append(candidate._replace(hit=candidate.hit.model_copy(update={"snippet": shown})))
    return state.but(candidates=tuple(candidates))


def snippet(text: str, question: frozenset[str], chars: int) -> str:
    """At most `chars` characters from the first sentence that holds most terms of the `question`, on one line.

    Terms are matched as substrings, not as words: 50 candidates must cost well under a millisecond.
    """
    starts = [0, *(end.end() for end in _SENTENCE_END.finditer(text))]
    folded = text.lower()
    counts = [sum(term in folded[at:until] for term in question) for at, until in pairwise([*starts, len(text)])]
    best = max(range(len(counts)), key=lambda n: (counts[n], -n))
    joined = " ".join(text[starts[best] : starts[best] + 2 * chars].split())
    return joined if len(joined) <= chars else f"{joined[: chars - 1].rstrip()}…"
