"""Neighbours of the best hits by their vectors, and the part of a hit's text that fits the question best."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise

from shared.language.text import terms
from shared.models import Hit
from shared.settings import stages as s
from shared.store import DENSE, to_filter
from workers.search.stages.rescoring import similarity
from workers.search.state import VARIANT, Candidate, SearchState, Tools, by_score

_SENTENCE_END = re.compile(r"[.!?](?=\s)\s*|[。！？\n]\s*")


def neighbours(state: SearchState, options: s.NeighboursStage, tools: Tools) -> SearchState:
    """Add neighbours of the best hits, one batched call a layer, and keep as many candidates as are wanted.

    The neighbours nearest to the question have up to `share` of those places: a dense arm has already seen what is
    nearer to the question than they are, so by score alone none of them would ever be kept. A neighbour's score is its
    cosine to the question times the lowest ratio of score to cosine among the arms' own hits that are kept, so that it
    never passes one with the same cosine.
    """
    if not state.vector:
        return state.skip("no vector of the question")
    depth = options.depth or tools.settings.multi_query.search_depth
    branch = options.branch or tools.settings.multi_query.branch_limit
    known = {candidate.hit.chunk_id for candidate in state.candidates}
    layer = [candidate.hit for candidate in state.candidates if candidate.hit.vector][:branch]
    found: list[tuple[float, int, Hit]] = []
    for number in range(1, depth):
        fresh = _neighbours_of(layer, known, state, options, tools)
        near = sorted(((similarity(state.vector, hit.vector), hit) for hit in fresh), key=_nearest_first)
        if not near:
            break
        known |= {hit.chunk_id for _, hit in near}
        found += [(cosine, number, hit) for cosine, hit in near]
        layer = [hit for _, hit in near[:branch]]
    best = sorted(found, key=lambda one: _nearest_first((one[0], one[2])))[: int(options.share * state.query.wanted)]
    kept = state.candidates[: state.query.wanted - len(best)]
    cosines = [(one.score, similarity(state.vector, one.hit.vector)) for one in kept]
    ratio = min((score / cosine for score, cosine in cosines if cosine > 0), default=0.0)
    added = [_scored(hit, cosine, ratio, layer=number) for cosine, number, hit in best]
    return state.but(candidates=by_score([*kept, *added]))


def _nearest_first(one: tuple[float, Hit]) -> tuple[float, str]:
    return -one[0], one[1].chunk_id


def _neighbours_of(
    seeds: list[Hit], known: Collection[str], state: SearchState, options: s.NeighboursStage, tools: Tools
) -> list[Hit]:
    store, _ = tools.need_store()
    common = tools.request(to_filter(state.query.filters), options.limit)
    requests = [common.model_copy(update={"query": list(hit.vector), "using": DENSE}) for hit in seeds]
    found = {hit.chunk_id: hit for hits in store.query(requests) for hit in hits} if requests else {}
    return [hit for chunk_id, hit in found.items() if chunk_id not in known]


def _scored(hit: Hit, cosine: float, ratio: float, *, layer: int) -> Candidate:
    score = ratio * max(0.0, cosine)
    found = hit.but(parts={"dense": cosine, "fused": score})
    return Candidate(found, 0.0).plus("neighbours", score, cosine=cosine, ratio=ratio, layer=float(layer))


def enrich(state: SearchState, options: s.EnrichStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Give every candidate a snippet, for the wording that found it where there are several."""
    questions = [frozenset(terms(text)) for text in state.query.variants or (state.query.text,)]
    candidates = []
    for candidate in state.candidates:
        hit = candidate.hit
        question = questions[int(hit.parts.get(VARIANT, 0)) if state.query.variants else 0]
        candidates.append(candidate._replace(hit=hit.but(snippet=snippet(hit.text, question, options.chars))))
    return state.but(candidates=tuple(candidates))


@lru_cache(maxsize=2048)
def _sentences(text: str) -> tuple[list[int], list[str], str]:
    """Where the sentences of a chunk begin, each in lower case, and all of it."""
    starts = [0, *(end.end() for end in _SENTENCE_END.finditer(text))]
    folded = text.lower()
    return starts, [folded[at:until] for at, until in pairwise([*starts, len(text)])], folded


def snippet(text: str, question: frozenset[str], chars: int) -> str:
    """At most `chars` characters from the first sentence that holds most terms of the `question`, on one line.

    Terms are matched as substrings, not as words: 50 candidates must cost well under a millisecond.
    """
    starts, sentences, folded = _sentences(text)
    start, present = 0, [term for term in question if term in folded]
    if present:
        counts = [sum(map(sentence.__contains__, present)) for sentence in sentences]
        start = starts[counts.index(max(counts))]
    joined = " ".join(text[start : start + 2 * chars].split())
    return joined if len(joined) <= chars else f"{joined[: chars - 1].rstrip()}…"
