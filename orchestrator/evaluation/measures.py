"""Retrieval measures, question by question, computed by ir-measures (trec_eval's code). Averages nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.evaluation.dataset import Qrels
from shared.errors import RamifyError

NDCG, MRR, ALL = "ndcg@10", "mrr@10", "all@10"
MEASURES = (NDCG, "recall@2", "recall@5", "recall@10", "recall@20", MRR, ALL)
#: Ranked documents that the measures look at.
DEPTH = 20
_RECALL = {2: "recall@2", 5: "recall@5", 10: "recall@10", 20: "recall@20"}
Run = Mapping[str, Sequence[str]]
_Scored = dict[str, dict[str, float]]


def measure(qrels: Qrels, run: Run, relevant_from: int) -> NDArray[np.float64]:
    """A row for each question of `qrels` in its order, a column for each of MEASURES, fractions of 1.

    `run` gives each question's document ids, best first, each once; a question without any scores 0.
    nDCG@10: gain 2^grade - 1, discount log2(rank + 1), ideal from all judged grades. The others are binary: a document
    counts from grade `relevant_from` on. Recall@k: share of the relevant documents in the top k. MRR@10: 1 / rank of
    the first relevant one in the top 10. All@10: 1 when every relevant document stands in the top 10, else 0.
    Raises: RamifyError when ir-measures is not installed.
    """
    ir = _library()
    rows = {name: place for place, name in enumerate(qrels)}
    table = np.zeros((len(rows), len(MEASURES)))

    def put(name: str, found: Any) -> None:
        for value in found:
            table[rows[value.query_id], MEASURES.index(name)] = value.value

    gains = {q: {d: 2**grade - 1 for d, grade in judged.items()} for q, judged in qrels.items()}
    binary = {q: {d: int(grade >= relevant_from) for d, grade in judged.items()} for q, judged in qrels.items()}
    scored = _scored(rows, run, DEPTH)
    put(NDCG, ir.pytrec_eval.iter_calc([ir.nDCG @ 10], gains, scored))
    for cut, name in _RECALL.items():
        put(name, ir.pytrec_eval.iter_calc([ir.R @ cut], binary, scored))
    put(MRR, ir.pytrec_eval.iter_calc([ir.RR], binary, _scored(rows, run, 10)))
    # trec_eval has no such measure: all of them in the top 10 is a recall of 1 there.
    table[:, MEASURES.index(ALL)] = table[:, MEASURES.index("recall@10")] >= 1.0
    return table


def _scored(rows: Mapping[str, int], run: Run, depth: int) -> _Scored:
    """Ranks as scores that fall: trec_eval orders by score, and no two may be equal."""
    return {q: {d: float(depth - rank) for rank, d in enumerate(run.get(q, ())[:depth])} for q in rows}


def check_library() -> None:
    """Raises: RamifyError when ir-measures is not installed. Asked before hours of searching."""
    _library()


def _library() -> Any:
    try:
        import ir_measures  # noqa: PLC0415 - only an evaluation needs it, and its trec_eval is compiled code
    except ImportError:
        raise RamifyError("`ramify eval` needs the package ir-measures: pip install ir-measures") from None
    return ir_measures
