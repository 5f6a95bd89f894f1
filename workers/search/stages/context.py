"""What is shown around a hit: its neighbours in the document, and the part of its text that speaks of the question."""

from __future__ import annotations

import re
from itertools import pairwise

from qdrant_client import models

from shared.language.text import terms
from shared.models import Hit
from shared.settings import stages as s
from shared.store import DENSE, to_filter
from workers.search.stages.rescoring import similarity
from workers.search.state import Candidate, SearchState, Tools, by_score

_END = re.compile(r"[.!?](?=\s)\s*|[。！？\n]\s*")


def neighbours(state: SearchState, options: s.NeighboursStage, tools: Tools) -> SearchState:
    """Add neighbours of the best hits, one batched call a layer. They compete by their cosine to the question.

    A neighbour's score lies on the line between the best score at its own cosine: score_best * cosine / cosine_best,
    and never above the hit that stands at its cosine, so that what the arms found first keeps its lead.
    """
    if not state.vector:
        return state.skip("no vector of the question")
    depth = options.depth or tools.settings.multi_query.search_depth
    branch = options.branch or tools.settings.multi_query.branch_limit
    known = {candidate.hit.chunk_id: candidate for candidate in state.candidates}
    layer = [candidate.hit for candidate in state.candidates if candidate.hit.vector][:branch]
    anchor = _anchor(state)
    added: list[Candidate] = []
    for number in range(1, depth):
        fresh = _near(layer, known, state, options, tools)
        if not fresh:
            break
        scored = by_score([_scored(hit, state, anchor, number) for hit in fresh])
        known |= {candidate.hit.chunk_id: candidate for candidate in scored}
        added += scored
        layer = [candidate.hit for candidate in scored[:branch]]
    return state.but(candidates=by_score([*state.candidates, *added]))


def _near(
    seeds: list[Hit], known: dict[str, Candidate], state: SearchState, options: s.NeighboursStage, tools: Tools
) -> list[Hit]:
    store, _ = tools.need_store()
    requests = [
        models.QueryRequest(
            query=list(hit.vector),
            using=DENSE,
            filter=to_filter(state.query.filters),
            limit=options.limit,
            with_payload=True,
            with_vector=[DENSE],
        )
        for hit in seeds
    ]
    found = {hit.chunk_id: hit for hits in store.query(requests) for hit in hits} if requests else {}
    return [hit for chunk_id, hit in found.items() if chunk_id not in known]


def _anchor(state: SearchState) -> float:
    """Score per unit of cosine of the arms' own hits, the lowest of them: neighbours start behind."""
    ratios = [
        candidate.score / near
        for candidate in state.candidates
        if (near := similarity(state.vector, candidate.hit.vector)) > 0
    ]
    return min(ratios, default=0.0)


def _scored(hit: Hit, state: SearchState, anchor: float, layer: int) -> Candidate:
    near = similarity(state.vector, hit.vector)
    score = anchor * max(0.0, near)
    parts = {"dense": near, "fused": score}
    return Candidate(hit.model_copy(update={"parts": parts}), 0.0).plus(
        "neighbours", score, cosine=near, layer=float(layer)
    )


def enrich(state: SearchState, options: s.EnrichStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Give every candidate a snippet."""
    asked = frozenset(terms(state.query.text))
    return state.but(
        candidates=tuple(
            candidate._replace(
                hit=candidate.hit.model_copy(update={"snippet": snippet(candidate.hit.text, asked, options.chars)})
            )
            for candidate in state.candidates
        )
    )


def snippet(text: str, asked: frozenset[str], chars: int) -> str:
    """At most `chars` characters from the first sentence that holds most terms of the question, on one line.

    Terms are looked for as letters, not as words: 50 candidates must cost well under a millisecond.
    """
    starts = [0, *(end.end() for end in _END.finditer(text))]
    folded = text.lower()
    counts = [sum(term in folded[at:until] for term in asked) for at, until in pairwise([*starts, len(text)])]
    best = max(range(len(counts)), key=lambda n: (counts[n], -n))
    joined = " ".join(text[starts[best] : starts[best] + 2 * chars].split())
    return joined if len(joined) <= chars else f"{joined[: chars - 1].rstrip()}…"
