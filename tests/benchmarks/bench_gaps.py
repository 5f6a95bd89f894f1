"""One more round for gaps against the same number of searches spent on deeper candidates, on musique and 2wiki.

Run: pytest -m benchmark -s tests/benchmarks/bench_gaps.py
RAMIFY_TEST_BENCH_DATA names a data folder whose indexes are kept; without it the corpora are embedded anew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from orchestrator.evaluation.dataset import Dataset, load_dataset
from orchestrator.evaluation.direct import direct
from orchestrator.evaluation.runner import run_arms
from orchestrator.evaluation.statistics import ALL, MEASURES, measure
from tests.benchmarks.bench_binding import SHARED, settings

#: Candidates of a leaf, and of one that may look at as many as it and four more.
CANDIDATES, DEEPER = 50, 250

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not (SHARED / "eval").is_dir(), reason="the evaluation sets are not beside the project"),
]


class Outcome(NamedTuple):
    """By question: whether all its gold passages are in the first ten, and how often the model was asked."""

    complete: Mapping[str, bool]
    encoded: Mapping[str, int]


def outcome(dataset: Dataset, folder: Path, *, again: bool, candidates: int = CANDIDATES) -> Outcome:
    chosen = settings(folder, gaps={"enabled": again}, multi_query={"candidates_per_query": candidates})
    with direct(dataset.corpus, chosen, lambda _done, _total: None) as runner:
        found = run_arms(runner, dataset.questions, ("default",), {}, lambda: None)["default"]
    assert not [one.error for one in found if one.error]
    table = measure(dataset.qrels, {one.question_id: one.documents for one in found}, dataset.relevant_from)
    complete = table[:, MEASURES.index(ALL)]
    print(f"\nround {again}, {candidates} candidates: All@10 {100 * complete.mean():.1f}")
    names = list(dataset.qrels)
    return Outcome(
        dict(zip(names, map(bool, complete), strict=True)), {one.question_id: one.cost.embed_calls for one in found}
    )


@pytest.mark.parametrize("name", ["musique", "2wiki"])
def test_a_round_completes_more_questions_than_as_many_searches_spent_on_depth(name: str, tmp_path: Path) -> None:
    """As docs/quality.md tells it: of the questions that a round was made for, by the round and by depth."""
    kept = os.environ.get("RAMIFY_TEST_BENCH_DATA")
    folder, dataset = Path(kept) if kept else tmp_path, load_dataset(SHARED / "eval" / name)
    plain = outcome(dataset, folder, again=False)
    deeper = outcome(dataset, folder, again=False, candidates=DEEPER)
    again = outcome(dataset, folder, again=True)
    rounds = [one for one, times in again.encoded.items() if times > plain.encoded[one]]
    before, depth, gained = (sum(one.complete[name] for name in rounds) for one in (plain, deeper, again))
    print(f"of {len(rounds)} rounds complete before {before}, with the round {gained}, with depth {depth}")
    assert gained > max(before, depth)
