"""From what was found to figures: means with intervals, latencies, calls, and every pair of arms. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.measures import MEASURES, NDCG, measure
from orchestrator.evaluation.per_type import FEW, of_types
from orchestrator.evaluation.query_types import Typed
from orchestrator.evaluation.report import Arm, Bounds, Calls, Case, Evaluation, Method, Pair, Percentiles
from orchestrator.evaluation.runner import Found
from orchestrator.evaluation.significance import Floats, holm, interval, permutation_p, resampled_means
from shared.models import Cost

_CASES = 12
_MOST_WARNINGS = 20
#: Strategy -> what it found, in the order of the data set's questions.
Outcomes = Mapping[str, Sequence[Found]]


def compare(  # noqa: PLR0913 - what a reader of the figures must know
    dataset: Dataset,
    outcomes: Outcomes,
    *,
    mode: str,
    plan: str | None = None,
    types: Typed | None = None,
    warnings: Sequence[str] = (),
) -> Evaluation:
    """The evaluation of all arms, in the order of `outcomes`; per type too where the questions' `types` are given."""
    tables = {name: _table(dataset, found) for name, found in outcomes.items()}
    means = {name: resampled_means(table) for name, table in tables.items()}
    few = f"Only {len(dataset.questions)} questions: the intervals are rough."
    return Evaluation(
        dataset=dataset.name,
        questions=len(dataset.questions),
        arms=tuple(_arm(name, tables[name], means[name], found) for name, found in outcomes.items()),
        pairs=tuple(_pairs(tables, means)),
        types=of_types([types.types[question.id] for question in dataset.questions], tables) if types else (),
        method=Method(mode=mode, plan=plan, relevant_from=dataset.relevant_from, types=types and types.source),
        warnings=(
            *warnings,
            *(types.warnings if types else ()),
            *([few] if len(dataset.questions) < FEW else []),
            *_said(dataset, outcomes),
        ),
        cases=_cases(dataset, list(tables.values())),
        latencies={name: tuple(f.ms for f in found if f.error is None) for name, found in outcomes.items()},
    )


def _table(dataset: Dataset, found: Sequence[Found]) -> Floats:
    return measure(dataset.qrels, {one.question_id: one.documents for one in found}, dataset.relevant_from)


def _arm(name: str, table: Floats, means: Floats, found: Sequence[Found]) -> Arm:
    low, high = interval(means)
    answered = [one for one in found if one.error is None]
    cost = sum((one.cost for one in found), Cost())
    whole = [one.job_ms for one in answered if one.job_ms is not None]
    return Arm(
        strategy=name,
        metrics=dict(zip(MEASURES, _rounded(table.mean(axis=0)), strict=True)),
        intervals=dict(zip(MEASURES, _bounds(low, high), strict=True)),
        latency_ms=_percentiles([one.ms for one in answered]),
        job_ms=_percentiles(whole) if whole else None,
        calls=Calls(
            llm=cost.llm_calls, embed=cost.embed_calls, rerank=cost.rerank_calls, rerank_documents=cost.rerank_documents
        ),
        failed=len(found) - len(answered),
    )


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 6) for value in values]


def _bounds(low: Floats, high: Floats) -> list[Bounds]:
    return list(zip(_rounded(low), _rounded(high), strict=True))


def _percentiles(ms: Sequence[float]) -> Percentiles:
    p50, p95 = np.percentile(ms, [50, 95]) if ms else (0.0, 0.0)
    return Percentiles(p50=round(float(p50), 3), p95=round(float(p95), 3))


def _pairs(tables: Mapping[str, Floats], means: Mapping[str, Floats]) -> Iterator[Pair]:
    """Every two arms on every measure; p by Holm over the pairs of a measure."""
    arms = list(combinations(tables, 2))
    if not arms:
        return
    raw = np.array([permutation_p(tables[b] - tables[a]) for a, b in arms])
    adjusted = np.array([holm(list(column)) for column in raw.T]).T
    for (a, b), ps in zip(arms, adjusted, strict=True):
        low, high = interval(means[b] - means[a])
        differences = _rounded((tables[b] - tables[a]).mean(axis=0))
        for name, difference, bounds, p in zip(MEASURES, differences, _bounds(low, high), ps, strict=True):
            yield Pair(
                a=a, b=b, metric=name, difference=difference, low=bounds[0], high=bounds[1], p=round(float(p), 6)
            )


def _said(dataset: Dataset, outcomes: Outcomes) -> Iterator[str]:
    """What went wrong on the way, once each with the number of questions, the most frequent first."""
    said = Counter[str]()
    for name, found in outcomes.items():
        unknown = sum(any(document not in dataset.corpus.ids for document in one.documents) for one in found)
        if unknown:
            said[f"{name}: documents that are not in the corpus were found, and count as wrong."] = unknown
        for one in found:
            said.update({f"{name}: {warning}" for warning in one.warnings})
            if one.error is not None:
                said[f"{name}: failed, and counts as found nothing: {one.error}"] += 1
    for sentence, count in said.most_common(_MOST_WARNINGS):
        yield f"{sentence} ({count} of {len(dataset.questions)} questions)"
    if len(said) > _MOST_WARNINGS:
        yield f"There were {len(said) - _MOST_WARNINGS} more kinds of warnings."


def _cases(dataset: Dataset, tables: Sequence[Floats]) -> tuple[Case, ...]:
    """Where the first two arms differ most, the widest first."""
    if len(tables) < 2:
        return ()
    column = MEASURES.index(NDCG)
    a, b = tables[0][:, column], tables[1][:, column]
    widest = np.argsort(-np.abs(b - a), kind="stable")[:_CASES]
    return tuple(
        Case(question_id=q.id, question=q.text, a=float(a[row]), b=float(b[row]))
        for row in widest
        if a[row] != b[row] and (q := dataset.questions[row])
    )
