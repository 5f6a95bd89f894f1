"""How far two ranked lists agree. Pure; says nothing of which is better."""

from __future__ import annotations

from collections.abc import Sequence

#: Persistence of the reader: the first ten ranks carry 86 % of the weight (Webber, Moffat and Zobel, TOIS 2010).
P = 0.9


def overlap(a: Sequence[str], b: Sequence[str], depth: int = 10) -> float | None:
    """Documents that both lists have in their first `depth`, of those that the longer one has; None for two empty."""
    first, second = set(a[:depth]), set(b[:depth])
    most = max(len(first), len(second))
    return len(first & second) / most if most else None


def rank_biased_overlap(a: Sequence[str], b: Sequence[str], p: float = P) -> float | None:
    """Extrapolated RBO (equation 32 there, for lists of different lengths), 0 to 1; None for two empty lists.

    Each list holds a document once. Agreement high up counts more; beyond the ends it is taken to go on as it was.
    """
    short, long = sorted((list(a), list(b)), key=len)
    s, most = len(short), len(long)
    if not most:
        return None
    if not s:
        return 0.0
    shared = [len(set(short[:depth]) & set(long[:depth])) for depth in range(1, most + 1)]
    seen = sum(count / depth * p**depth for depth, count in enumerate(shared, 1))
    seen += sum(shared[s - 1] * (depth - s) / (s * depth) * p**depth for depth in range(s + 1, most + 1))
    beyond = (shared[-1] - shared[s - 1]) / most + shared[s - 1] / s
    return (1 - p) / p * seen + beyond * p**most
