"""The figures of an evaluation: means with intervals, latencies, calls, every pair of arms, every type. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.labels import QuestionTypes
from orchestrator.evaluation.report import (
    ArmFigures,
    Calls,
    Case,
    Evaluation,
    Method,
    OfType,
    Pair,
    Percentiles,
    RelevanceMark,
)
from orchestrator.evaluation.runner import ArmOutcome
from orchestrator.evaluation.statistics import (
    MEASURES,
    NDCG,
    SEED,
    Floats,
    holm,
    interval,
    measure,
    permutation_p,
    resampled_means,
)
from shared.models import Cost

_CASES = 12
_MOST_WARNINGS = 20
#: A mark of "nothing relevant" may refuse so many of the questions; what it does is told by so many halvings of them.
_MOST_REFUSED, _HALVES, _FEWEST = 0.05, 40, 20
#: Below so many questions, a bootstrap interval is too narrow more often than it says.
FEW = 30
#: Strategy -> what it found, in the order of the data set's questions.
Outcomes = Mapping[str, Sequence[ArmOutcome]]


def compare(  # noqa: PLR0913 - what a reader of the figures must know
    dataset: Dataset,
    outcomes: Outcomes,
    *,
    mode: str,
    plan: str | None = None,
    types: QuestionTypes | None = None,
    warnings: Sequence[str] = (),
) -> Evaluation:
    """The evaluation of all arms, in the order of `outcomes`; per type too where the questions' `types` are given."""
    tables = {
        name: measure(dataset.qrels, {one.question_id: one.documents for one in found}, dataset.relevant_from)
        for name, found in outcomes.items()
    }
    whole = _group(tables)
    total = len(dataset.questions)
    few = f"Only {total} questions: the intervals are rough."
    return Evaluation(
        dataset=dataset.name,
        questions=total,
        arms=tuple(
            _arm(name, tables[name], whole.means[name], found).model_copy(update={"relevance": _mark(dataset, found)})
            for name, found in outcomes.items()
        ),
        pairs=_pairs([whole])[0],
        types=of_types([types.types[question.id] for question in dataset.questions], tables) if types else (),
        method=Method(mode=mode, plan=plan, relevant_from=dataset.relevant_from, types=types and types.source),
        warnings=(
            *warnings,
            *(types.warnings if types else ()),
            *([few] if total < FEW else []),
            *frequent_warnings(outcomes, total, "failed, and counts as found nothing", dataset.corpus.ids),
        ),
        cases=_cases(dataset, list(tables.values())),
        latencies={name: tuple(f.ms for f in found if f.error is None) for name, found in outcomes.items()},
    )


def _arm(name: str, table: Floats, means: Floats, found: Sequence[ArmOutcome]) -> ArmFigures:
    low, high = interval(means)
    answered = [one for one in found if one.error is None]
    cost = sum((one.cost for one in found), Cost())
    whole = [one.job_ms for one in answered if one.job_ms is not None]
    return ArmFigures(
        strategy=name,
        metrics=_by_measure(table.mean(axis=0)),
        intervals=dict(zip(MEASURES, zip(_rounded(low), _rounded(high), strict=True), strict=True)),
        latency_ms=percentiles([one.ms for one in answered]),
        job_ms=percentiles(whole) if whole else None,
        calls=calls_of(cost),
        failed=len(found) - len(answered),
    )


def _mark(dataset: Dataset, found: Sequence[ArmOutcome]) -> RelevanceMark | None:
    """The mark of "nothing relevant" by a strategy's scores; None of few questions or without a reranker."""
    scored = [one for one in found if one.error is None]
    if len(scored) < _FEWEST or not any(one.relevance for one in scored):
        return None
    own = np.array([max(one.relevance.values(), default=0.0) for one in scored])
    without = np.array([max(_irrelevant(dataset, one), default=0.0) for one in scored])
    mark, draw = _highest(own), np.random.default_rng(SEED)
    shares = []
    for order in (draw.permutation(len(own)) for _ in range(_HALVES)):
        chosen = _highest(own[order[::2]])
        shares.append([float(np.mean(scores[order[1::2]] < chosen)) for scores in (own, without)])
    if not mark:
        return None
    refused, caught = _rounded(np.array(shares).mean(axis=0))
    return RelevanceMark(mark=mark, questions=len(own), refused=refused, caught=caught)


def _irrelevant(dataset: Dataset, one: ArmOutcome) -> Iterator[float]:
    """The scores of the documents that are not relevant to a question."""
    grades = dataset.qrels[one.question_id]
    return (score for name, score in one.relevance.items() if grades.get(name, 0) < dataset.relevant_from)


def _highest(own: Floats) -> float:
    """The highest mark with three digits below which at most a twentieth of scores are to be expected."""
    lowest = np.sort(own)[max(0, int(_MOST_REFUSED * len(own)) - 1)] if len(own) else 0.0
    return float(np.floor(1000 * lowest) / 1000)


def calls_of(cost: Cost) -> Calls:
    """The calls in a cost, without its tokens."""
    return Calls(
        llm=cost.llm_calls, embed=cost.embed_calls, rerank=cost.rerank_calls, rerank_documents=cost.rerank_documents
    )


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 6) for value in values]


def percentiles(ms: Sequence[float]) -> Percentiles:
    """p50 and p95 of milliseconds; 0 of none."""
    p50, p95 = np.percentile(ms, [50, 95]) if ms else (0.0, 0.0)
    return Percentiles(p50=round(float(p50), 3), p95=round(float(p95), 3))


class _Group(NamedTuple):
    """Some of the questions: each arm's rows (questions, measures), and their resampled means."""

    tables: Mapping[str, Floats]
    means: Mapping[str, Floats]


def _group(tables: Mapping[str, Floats]) -> _Group:
    return _Group(tables, {arm: resampled_means(rows) for arm, rows in tables.items()})


def _pairs(groups: Sequence[_Group]) -> list[tuple[Pair, ...]]:
    """Of each group every two arms on every measure; p by Holm over the groups and pairs of a measure."""
    found = [(number, a, b) for number, group in enumerate(groups) for a, b in combinations(group.tables, 2)]
    differences = [groups[number].tables[b] - groups[number].tables[a] for number, a, b in found]
    raw = np.array([permutation_p(rows) for rows in differences]).reshape(len(found), len(MEASURES))
    adjusted = np.array([holm(list(column)) for column in raw.T]).T
    pairs: list[list[Pair]] = [[] for _ in groups]
    for (number, a, b), rows, ps in zip(found, differences, adjusted, strict=True):
        low, high = interval(groups[number].means[b] - groups[number].means[a])
        values = zip(MEASURES, _rounded(rows.mean(axis=0)), _rounded(low), _rounded(high), _rounded(ps), strict=True)
        pairs[number] += [
            Pair(a=a, b=b, metric=name, difference=mean, low=least, high=most, p=p)
            for name, mean, least, most, p in values
        ]
    return [tuple(of_group) for of_group in pairs]


def frequent_warnings(
    outcomes: Outcomes, questions: int, failed: str, corpus: Collection[str] | None = None
) -> Iterator[str]:
    """The warnings and errors of all questions, once each with the number of questions, the most frequent first.

    `failed` says what becomes of a failed question; `corpus` has the ids of all documents that count.
    """
    counts = Counter[str]()
    for name, found in outcomes.items():
        for one in found:
            if corpus is not None and any(document not in corpus for document in one.documents):
                counts[f"{name}: documents that are not in the corpus were found, and count as wrong."] += 1
            counts.update({f"{name}: {warning}" for warning in one.warnings})
            if one.error is not None:
                counts[f"{name}: {failed}: {one.error}"] += 1
    for sentence, count in counts.most_common(_MOST_WARNINGS):
        yield f"{sentence} ({count} of {questions} questions)"
    if len(counts) > _MOST_WARNINGS:
        yield f"There were {len(counts) - _MOST_WARNINGS} more kinds of warnings."


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


def of_types(types: Sequence[str], tables: Mapping[str, Floats]) -> tuple[OfType, ...]:
    """The same for the questions of each type, the largest first; `types` are the types of the tables' rows.

    p is adjusted by Holm over all types and pairs of a measure: to look at five types is to ask five times.
    """
    labels = np.array(types)
    names = sorted(set(types), key=lambda name: (-types.count(name), name))
    groups = [_group({arm: rows[labels == name] for arm, rows in tables.items()}) for name in names]
    return tuple(
        OfType(
            type=name,
            questions=types.count(name),
            metrics={arm: _by_measure(rows.mean(axis=0)) for arm, rows in group.tables.items()},
            pairs=pairs,
        )
        for name, group, pairs in zip(names, groups, _pairs(groups), strict=True)
    )


def _by_measure(row: Floats) -> dict[str, float]:
    return dict(zip(MEASURES, _rounded(row), strict=True))
