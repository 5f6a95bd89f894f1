"""Fusion of the arms of one query (D2). Pure: ranked lists in, one ranked list out.

Arms are lists of (chunk id, score), best first. Leaves are never fused here: see `workers.merge.tree`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Arm = Sequence[tuple[str, float]]


def reciprocal_rank_fusion(arms: Mapping[str, Arm], weights: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    """Sum of w / (k + rank) over the arms, ranks from 1 (Cormack et al. 2009). Ties are broken by id."""
    scores: dict[str, float] = {}
    for name, arm in arms.items():
        for rank, (chunk_id, _) in enumerate(arm, start=1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weights.get(name, 1.0) / (k + rank)
    return _ranked(scores)


def linear_fusion(arms: Mapping[str, Arm], weights: Mapping[str, float]) -> list[tuple[str, float]]:
    """Weighted sum of each arm's scores over that arm's best score (002: per-query max normalisation)."""
    scores: dict[str, float] = {}
    for name, arm in arms.items():
        best = max((score for _, score in arm), default=0.0)
        for chunk_id, score in arm:
            share = max(0.0, score) / best if best > 0 else 0.0
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weights.get(name, 1.0) * share
    return _ranked(scores)


def _ranked(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
