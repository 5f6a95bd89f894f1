"""Retrieval measures by ir-measures, and how sure a mean and a difference are. Pure, and seeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.evaluation.dataset import Qrels
from shared.errors import RamifyError

SEED = 20261120
RESAMPLES = 10_000
LEVEL = 0.95
#: Resamples held in memory at a time.
_BLOCK = 1000
Floats = NDArray[np.float64]
NDCG, MRR, ALL = "ndcg@10", "mrr@10", "all@10"
MEASURES = (NDCG, "recall@2", "recall@5", "recall@10", "recall@20", MRR, ALL)
#: Ranked documents that the measures look at.
DEPTH = 20
Run = Mapping[str, Sequence[str]]


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


def interval(means: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """(low, high) percentiles of each column of `resampled_means`, or of a difference of such columns."""
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


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


def measure(qrels: Qrels, run: Run, relevant_from: int) -> Floats:
    """A row for each question of `qrels` in its order, a column for each of MEASURES, fractions of 1.

    `run` gives each question's document ids, best first, each once; a question without any scores 0.
    nDCG@10: gain 2^grade - 1, discount log2(rank + 1), ideal from all judged grades. The others are binary: a document
    counts from grade `relevant_from` on. Recall@k: share of the relevant documents in the top k. MRR@10: 1 / rank of
    the first relevant one in the top 10. All@10: 1 when every relevant document is in the top 10, else 0.
    Raises: RamifyError when ir-measures is not installed.
    """
    ir = check_library()
    rows = {name: place for place, name in enumerate(qrels)}
    table = np.zeros((len(rows), len(MEASURES)))

    def put(name: str, found: Any) -> None:
        for value in found:
            table[rows[value.query_id], MEASURES.index(name)] = value.value

    gains = {q: {d: 2**grade - 1 for d, grade in judged.items()} for q, judged in qrels.items()}
    binary = {q: {d: int(grade >= relevant_from) for d, grade in judged.items()} for q, judged in qrels.items()}
    scored = _scored(rows, run, DEPTH)
    put(NDCG, ir.pytrec_eval.iter_calc([ir.nDCG @ 10], gains, scored))
    for cut in (2, 5, 10, 20):
        put(f"recall@{cut}", ir.pytrec_eval.iter_calc([ir.R @ cut], binary, scored))
    put(MRR, ir.pytrec_eval.iter_calc([ir.RR], binary, _scored(rows, run, 10)))
    # trec_eval has no such measure: all of them in the top 10 is a recall of 1 there.
    table[:, MEASURES.index(ALL)] = table[:, MEASURES.index("recall@10")] >= 1.0
    return table


def _scored(rows: Mapping[str, int], run: Run, depth: int) -> dict[str, dict[str, float]]:
    """Ranks as scores that fall: trec_eval orders by score, and no two may be equal."""
    return {q: {d: float(depth - rank) for rank, d in enumerate(run.get(q, ())[:depth])} for q in rows}


def check_library() -> Any:
    """The module ir_measures; called before hours of searching. Raises: RamifyError when it is not installed."""
    try:
        import ir_measures  # noqa: PLC0415 - only an evaluation needs it, and its trec_eval is compiled code
    except ImportError:
        raise RamifyError("`ramify eval` needs the package ir-measures: pip install ir-measures") from None
    return ir_measures
