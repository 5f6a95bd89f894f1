"""One more round for gaps against the same number of searches spent on deeper candidates, on musique and 2wiki.

Run: pytest -m benchmark -s tests/benchmarks/bench_gaps.py
RAMIFY_TEST_BENCH_DATA names a data folder whose indexes are kept; without it the corpora are embedded anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.evaluation.compare import compare
from orchestrator.evaluation.dataset import Dataset, load_dataset
from orchestrator.evaluation.direct import direct
from orchestrator.evaluation.runner import run_arms
from tests.benchmarks.bench_binding import SHARED, settings

#: Candidates of a leaf, and of one that may look at as many as it and four more.
CANDIDATES, DEEPER = 50, 250

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not (SHARED / "eval").is_dir(), reason="the evaluation sets are not beside the project"),
]


def all_at_10(dataset: Dataset, folder: Path, *, again: bool, candidates: int = CANDIDATES) -> float:
    chosen = settings(folder, gaps={"enabled": again}, multi_query={"candidates_per_query": candidates})
    with direct(dataset.corpus, chosen, lambda _done, _total: None) as runner:
        outcomes = run_arms(runner, dataset.questions, ("default",), {}, lambda: None)
    arm = compare(dataset, outcomes, mode="direct").arms[0]
    print(f"\nround {again}, {candidates} candidates: {arm.metrics} {arm.latency_ms}")
    assert arm.failed == 0
    return arm.metrics["all@10"]


@pytest.mark.parametrize("name", ["musique", "2wiki"])
def test_a_round_gains_more_than_as_many_searches_spent_on_depth(name: str, tmp_path: Path) -> None:
    kept = os.environ.get("RAMIFY_TEST_BENCH_DATA")
    folder, dataset = Path(kept) if kept else tmp_path, load_dataset(SHARED / "eval" / name)
    plain = all_at_10(dataset, folder, again=False)
    deeper = all_at_10(dataset, folder, again=False, candidates=DEEPER)
    assert all_at_10(dataset, folder, again=True) - plain > max(0.0, deeper - plain)
