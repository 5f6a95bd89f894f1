"""From comparisons of shadow runs to a report. Pure. Never says that one is better without judgements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from orchestrator.evaluation.ab_report import AbReport, Mean, Quality, Row, Spent, Trial
from orchestrator.evaluation.labels import Labels
from orchestrator.evaluation.measures import MEASURES, NDCG, measure
from orchestrator.evaluation.per_type import FEW
from orchestrator.evaluation.report import Percentiles
from orchestrator.evaluation.significance import Floats, holm, interval, permutation_p, resampled_means
from shared.models import Cost
from shared.models.ab import Comparison, Side

_ALL = "all"
_DIGITS = 6
UNJUDGED = (
    "There are no judgements: this says how far the answers agree and what they cost, not which are better. "
    "`--labels FILE` or `ramify eval` says that; no model judges here."
)
CACHED = "Shadow runs come second: what the live job left in the caches makes their times and calls smaller."


def report(compared: Sequence[Comparison], counts: Mapping[str, int], labels: Labels | None = None) -> AbReport:
    """The report of all comparisons, the pair of strategies with the most questions first."""
    by_pair: dict[tuple[str, str], list[Comparison]] = {}
    for one in compared:
        by_pair.setdefault((one.live.strategy, one.shadow.strategy), []).append(one)
    trials = [_trial(*pair, found, labels) for pair, found in sorted(by_pair.items(), key=lambda item: -len(item[1]))]
    return AbReport(counts=dict(counts), trials=tuple(trials), said=tuple(_said(trials, labels)))


def _trial(live: str, shadow: str, compared: Sequence[Comparison], labels: Labels | None) -> Trial:
    sizes = Counter(one.type for one in compared)
    groups = {_ALL: list(compared)}
    groups |= {name: [one for one in compared if one.type == name] for name, _ in sizes.most_common()}
    rows = {name: _row(name, found) for name, found in groups.items()}
    if labels is not None:
        qualities = _qualities({name: judged(found, labels) for name, found in groups.items()})
        rows = {name: row.model_copy(update={"quality": qualities.get(name)}) for name, row in rows.items()}
    return Trial(live=live, shadow=shadow, rows=tuple(rows.values()))


def _row(name: str, compared: Sequence[Comparison]) -> Row:
    some = [one for one in compared if one.overlap is not None]
    firsts = [one.live.documents[:1] == one.shadow.documents[:1] for one in some]
    return Row(
        type=name,
        n=len(compared),
        overlap=_mean([one.overlap for one in some if one.overlap is not None]),
        rbo=_mean([one.rbo for one in some if one.rbo is not None]),
        same_first=round(sum(firsts) / len(firsts), _DIGITS) if firsts else None,
        empty=len(compared) - len(some),
        live=_spent([one.live for one in compared]),
        shadow=_spent([one.shadow for one in compared]),
    )


def _mean(values: Sequence[float]) -> Mean | None:
    if not values:
        return None
    low, high = interval(resampled_means(np.array(values)[:, None]))
    mean, least, most = (round(float(value), _DIGITS) for value in (np.mean(values), low[0], high[0]))
    return Mean(mean=mean, low=least, high=most, n=len(values))


def _spent(sides: Sequence[Side]) -> Spent:
    p50, p95 = np.percentile([side.ms for side in sides], [50, 95])
    return Spent(
        cost=sum((side.cost for side in sides), Cost()),
        ms=Percentiles(p50=round(float(p50), 1), p95=round(float(p95), 1)),
        nothing=sum(side.nothing for side in sides),
    )


def judged(compared: Sequence[Comparison], labels: Labels) -> Floats:
    """(questions, 2): nDCG@10 of live and shadow, for each question that is judged, the newest answer of each."""
    qrels: dict[str, dict[str, int]] = {}
    runs: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for one in compared:
        for run, side in zip(runs, (one.live, one.shadow), strict=True):
            known = labels.of(one.question, side.documents)
            if known is not None and one.question not in run:
                qrels[one.question], run[one.question] = known[0], list(dict.fromkeys(known[1]))
    if not qrels:
        return np.empty((0, 2))
    column = MEASURES.index(NDCG)
    return np.column_stack([measure(qrels, run, 1)[:, column] for run in runs])


def _qualities(
    tables: Mapping[str, Floats],
) -> dict[str, Quality]:
    """By row, for rows with a judged question."""
    some = {name: table for name, table in tables.items() if len(table)}
    ps = holm([float(permutation_p(table[:, 1:] - table[:, :1])[0]) for table in some.values()])
    return {name: _quality(table, p) for (name, table), p in zip(some.items(), ps, strict=True)}


def _quality(table: Floats, p: float) -> Quality:
    differences = table[:, 1] - table[:, 0]
    won = np.sign(np.round(differences, 9)) / 2 + 0.5
    low, high = interval(resampled_means(np.column_stack([differences, won])))
    live, shadow = (round(float(mean), _DIGITS) for mean in table.mean(axis=0))
    return Quality(
        n=len(table),
        live=live,
        shadow=shadow,
        difference=round(float(differences.mean()), _DIGITS),
        low=round(float(low[0]), _DIGITS),
        high=round(float(high[0]), _DIGITS),
        p=round(p, _DIGITS),
        wins=int((won == 1).sum()),
        losses=int((won == 0).sum()),
        ties=int((won == 0.5).sum()),
        win_rate=round(float(won.mean()), _DIGITS),
        win_rate_bounds=(round(float(low[1]), _DIGITS), round(float(high[1]), _DIGITS)),
    )


def _said(trials: Sequence[Trial], labels: Labels | None) -> Iterator[str]:
    """What can be said, and what cannot."""
    for trial in trials:
        whole = trial.rows[0]
        pair = f"{trial.shadow} against {trial.live}"
        if whole.n < FEW:
            yield f"{pair}: only {whole.n} questions, the intervals are rough."
        if labels is None:
            continue
        if whole.quality is None:
            yield f"{pair}: none of its questions is in the labels, so nothing is said of quality."
        else:
            yield f"{pair}: {_verdict(whole.quality, whole.n)}"
    if trials:
        yield CACHED
    if labels is None:
        yield UNJUDGED


def _verdict(found: Quality, questions: int) -> str:
    on = f"on the {found.n} judged of {questions} questions"
    if found.p >= 0.05:
        return f"{on} no difference is shown (p {found.p:.3f}); that is no proof that there is none."
    better = "better" if found.difference > 0 else "worse"
    return f"{on} it is {better} by {abs(100 * found.difference):.1f} points of nDCG@10 (p {max(found.p, 0.001):.3f})."
