"""How sure a mean and a difference are: paired bootstrap, sign-flip permutation, Holm. Pure, and seeded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SEED = 20261120
RESAMPLES = 10_000
LEVEL = 0.95
#: Resamples held in memory at a time.
_BLOCK = 1000
Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """Bounds of each column."""

    low: Floats
    high: Floats


def resampled_means(values: Floats, seed: int = SEED, resamples: int = RESAMPLES) -> Floats:
    """(questions, columns) -> (resamples, columns): column means over questions drawn with replacement.

    All columns share the draws, so the difference of two columns is a paired bootstrap of their difference.
    """
    rng, count = np.random.default_rng(seed), len(values)
    blocks = []
    for start in range(0, resamples, _BLOCK):
        drawn = rng.multinomial(count, np.full(count, 1 / count), size=min(_BLOCK, resamples - start))
        blocks.append(drawn @ values / count)
    return np.concatenate(blocks)


def interval(means: Floats, level: float = LEVEL) -> Interval:
    """The percentile interval of each column of `resampled_means`, or of a difference of such columns."""
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return Interval(low, high)


def permutation_p(differences: Floats, seed: int = SEED, resamples: int = RESAMPLES) -> Floats:
    """(questions, columns) of paired differences -> two-sided p of each column's mean being 0.

    Signs are flipped at random, as if the arms' names were exchanged question by question; the observed outcome counts
    as one of the draws, so p is never 0 (Smucker, Allan and Carterette, CIKM 2007).
    """
    rng, count = np.random.default_rng(seed), len(differences)
    observed = np.abs(differences.mean(axis=0)) - 1e-12
    extreme = np.zeros(differences.shape[1])
    for start in range(0, resamples, _BLOCK):
        signs = rng.integers(0, 2, size=(min(_BLOCK, resamples - start), count)) * 2.0 - 1.0
        extreme += (np.abs(signs @ differences / count) >= observed).sum(axis=0)
    p: Floats = (extreme + 1) / (resamples + 1)
    return p


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p values in the given order: of m, the i-th smallest times m - i + 1; never falling."""
    adjusted, worst = [0.0] * len(ps), 0.0
    for step, place in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        worst = max(worst, min(1.0, ps[place] * (len(ps) - step)))
        adjusted[place] = worst
    return adjusted
