"""The same comparison for each type of question. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from orchestrator.evaluation.measures import MEASURES
from orchestrator.evaluation.report import OfType, Pair
from orchestrator.evaluation.significance import Floats, holm, interval, permutation_p, resampled_means

#: Below so many questions, a bootstrap interval is too narrow more often than it says.
FEW = 30


class _Raw(NamedTuple):
    """One type and pair of arms: differences and bounds by measure, p not yet adjusted."""

    type: str
    a: str
    b: str
    difference: Floats
    low: Floats
    high: Floats
    p: Floats


def of_types(types: Sequence[str], tables: Mapping[str, Floats]) -> tuple[OfType, ...]:
    """`types` are the types of the tables' rows; the largest type first.

    p is adjusted by Holm over all types and pairs of a measure: to look at five types is to ask five times.
    """
    labels = np.array(types)
    names = sorted(set(types), key=lambda name: (-types.count(name), name))
    raw = [one for name in names for one in _raw(name, {arm: rows[labels == name] for arm, rows in tables.items()})]
    ps: Floats = np.array([one.p for one in raw]) if raw else np.empty((0, len(MEASURES)))
    adjusted = np.array([holm(list(column)) for column in ps.T]).T
    pairs = list(zip(raw, adjusted, strict=True))
    return tuple(
        OfType(
            type=name,
            questions=types.count(name),
            metrics={arm: _by_measure(rows[labels == name].mean(axis=0)) for arm, rows in tables.items()},
            pairs=tuple(pair for one, p in pairs if one.type == name for pair in _pairs(one, p)),
        )
        for name in names
    )


def _raw(name: str, tables: Mapping[str, Floats]) -> Iterator[_Raw]:
    means = {arm: resampled_means(rows) for arm, rows in tables.items()}
    for a, b in combinations(tables, 2):
        low, high = interval(means[b] - means[a])
        differences = tables[b] - tables[a]
        yield _Raw(name, a, b, differences.mean(axis=0), low, high, permutation_p(differences))


def _pairs(one: _Raw, adjusted: Floats) -> Iterator[Pair]:
    for column, measure in enumerate(MEASURES):
        difference, low, high = (round(float(row[column]), 6) for row in (one.difference, one.low, one.high))
        p = round(float(adjusted[column]), 6)
        yield Pair(a=one.a, b=one.b, metric=measure, difference=difference, low=low, high=high, p=p)


def _by_measure(row: Floats) -> dict[str, float]:
    return {name: round(float(value), 6) for name, value in zip(MEASURES, row, strict=True)}
