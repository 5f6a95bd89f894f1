"""Layered search: the best hits of a layer seed the next one by their stored vectors.

Every candidate is finally scored against the leaf's own question, not against the hit that led to it.
"""

from __future__ import annotations

from qdrant_client import models

from shared.models import Hit
from shared.settings import stages as s
from shared.store import DENSE, to_filter
from workers.search.stages.cosine import similarity
from workers.search.state import Candidate, State, by_score
from workers.search.tools import Tools


def neighbours(state: State, options: s.Neighbours, tools: Tools) -> State:
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
    seeds: list[Hit], known: dict[str, Candidate], state: State, options: s.Neighbours, tools: Tools
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


def _anchor(state: State) -> float:
    """Score per unit of cosine of the arms' own hits, the lowest of them: neighbours start behind."""
    ratios = [
        candidate.score / near
        for candidate in state.candidates
        if (near := similarity(state.vector, candidate.hit.vector)) > 0
    ]
    return min(ratios, default=0.0)


def _scored(hit: Hit, state: State, anchor: float, layer: int) -> Candidate:
    near = similarity(state.vector, hit.vector)
    score = anchor * max(0.0, near)
    parts = {"dense": near, "fused": score}
    return Candidate(hit.model_copy(update={"parts": parts}), 0.0).plus(
        "neighbours", score, cosine=near, layer=float(layer)
    )
