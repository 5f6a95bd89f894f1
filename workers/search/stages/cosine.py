"""Cosine rescoring: the fused rank knows agreement, the cosine knows nearness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shared.settings import stages as s
from workers.search.state import State, by_score
from workers.search.tools import Tools


def cosine(state: State, options: s.Cosine, tools: Tools) -> State:  # noqa: ARG001
    """(1 - w) * score / best + w * cosine; a candidate without a vector has cosine 0."""
    if not state.vector or not state.candidates:
        return state.skip("no vector of the question")
    best = max(candidate.score for candidate in state.candidates)
    mixed = []
    for candidate, near in zip(state.candidates, cosines(state), strict=True):
        scaled = candidate.score / best if best > 0 else 0.0
        score = (1 - options.weight) * scaled + options.weight * near
        mixed.append(candidate.plus("cosine", score - candidate.score, cosine=near, scaled=scaled))
    return state.but(candidates=by_score(mixed))


def cosines(state: State) -> list[float]:
    """Each candidate's cosine to the question."""
    return [similarity(state.vector, candidate.hit.vector) for candidate in state.candidates]


def similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """Cosine of two vectors, 0 when one is missing."""
    if not one or not other or len(one) != len(other):
        return 0.0
    a, b = np.asarray(one), np.asarray(other)
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norm if norm > 0 else 0.0
