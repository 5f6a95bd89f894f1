"""The measures against sums worked out by hand, and the statistics against what is known of them."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.render.evaluation import draw_evaluation
from orchestrator.cli.streams import console
from orchestrator.evaluation.compare import compare
from orchestrator.evaluation.dataset import Dataset, LabelledCorpus, LabelledQuestion
from orchestrator.evaluation.runner import ArmOutcome
from orchestrator.evaluation.statistics import MEASURES, holm, interval, measure, permutation_p, resampled_means


def of(qrels, run, relevant_from=1):
    return dict(zip(MEASURES, measure({"q": qrels}, {"q": run}, relevant_from)[0], strict=True))


def test_given_graded_judgements_when_measured_then_gain_is_two_to_the_grade_minus_one():
    found = of({"a": 3, "b": 1, "c": 0, "d": 2}, ["b", "x", "a"], 2)
    ideal = 7 + 3 / math.log2(3) + 1 / math.log2(4)
    assert found["ndcg@10"] == pytest.approx((1 + 7 / math.log2(4)) / ideal)
    assert found["mrr@10"] == pytest.approx(1 / 3)
    assert (found["recall@2"], found["recall@5"], found["all@10"]) == (0, 0.5, 0)


def test_given_two_relevant_documents_when_both_are_in_the_top_ten_then_all_counts():
    others = [f"x{n}" for n in range(30)]
    assert of({"a": 1, "b": 1}, [*others[:8], "a", "b"])["all@10"] == 1
    late = of({"a": 1, "b": 1}, [*others[:9], "a", "b"])
    assert (late["all@10"], late["recall@10"], late["recall@20"]) == (0, 0.5, 1)
    assert late["mrr@10"] == pytest.approx(0.1)


def test_given_a_first_relevant_document_at_eleven_when_measured_then_mrr_is_nothing():
    found = of({"a": 1}, [*(f"x{n}" for n in range(10)), "a"])
    assert (found["mrr@10"], found["ndcg@10"], found["recall@20"]) == (0, 0, 1)


def test_given_nothing_found_when_measured_then_all_is_zero_and_the_question_still_counts():
    table = measure({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ["a"]}, 1)
    assert table.tolist() == [[1] * len(MEASURES), [0] * len(MEASURES)]


def by_hand(qrels, run):
    gains = [2 ** qrels.get(document, 0) - 1 for document in run[:10]]
    ideal = sorted((2**grade - 1 for grade in qrels.values()), reverse=True)[:10]
    return tuple(sum(gain / math.log2(rank + 2) for rank, gain in enumerate(some)) for some in (gains, ideal))


@given(
    st.dictionaries(st.sampled_from("abcdefghijklmnopqrst"), st.integers(0, 3), min_size=1),
    st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), unique=True, max_size=25),
)
def test_given_any_run_when_measured_then_ndcg_is_the_formula(qrels, run):
    if not any(qrels.values()):
        return
    gained, ideal = by_hand(qrels, run)
    assert of(qrels, run)["ndcg@10"] == pytest.approx(gained / ideal)


def test_given_values_when_resampled_then_the_interval_holds_the_mean_and_narrows_with_more_questions():
    rng = np.random.default_rng(1)
    widths = []
    for count in (50, 800):
        values = rng.random((count, 1))
        low, high = interval(resampled_means(values))
        assert low[0] < values.mean() < high[0]
        widths.append(high[0] - low[0])
        assert high[0] - low[0] == pytest.approx(2 * 1.96 * values.std() / math.sqrt(count), rel=0.1)
    assert widths[1] < widths[0] / 3


def test_given_the_same_values_when_resampled_twice_then_nothing_changes():
    values = np.random.default_rng(2).random((40, 3))
    assert (resampled_means(values) == resampled_means(values)).all()
    assert (permutation_p(values - 0.4) == permutation_p(values - 0.4)).all()


def test_given_paired_columns_when_compared_then_a_steady_difference_has_no_spread():
    values = np.random.default_rng(3).random(60)
    means = resampled_means(np.column_stack([values, values + 0.1]))
    low, high = interval(means[:, 1:] - means[:, :1])
    assert (low[0], high[0]) == (pytest.approx(0.1), pytest.approx(0.1))


def test_given_differences_when_tested_then_p_is_what_the_sign_flips_give():
    five = permutation_p(np.ones((5, 1)))[0]
    assert five == pytest.approx(2 / 2**5, abs=0.01)
    assert permutation_p(np.zeros((5, 1)))[0] == 1
    balanced = np.array([[0.3], [-0.3], [0.2], [-0.2]])
    assert permutation_p(balanced)[0] > 0.9


def test_given_p_values_when_adjusted_then_they_follow_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.2]) == [0.2]


def scored(relevance):
    """An evaluation of 100 questions, each with the relevant document g, and x. `relevance`: number to scores."""
    names = [f"q{n}" for n in range(100)]
    corpus = LabelledCorpus(path=Path("c"), digest="d", ids=frozenset({"g", "x"}))
    asked = tuple(LabelledQuestion(id=name, text=name, labels={}) for name in names)
    data = Dataset("set", corpus, asked, qrels={name: {"g": 1} for name in names}, relevant_from=1)
    found = [
        ArmOutcome(question_id=name, strategy="s", documents=("g", "x"), relevance=relevance(n))
        for n, name in enumerate(names)
    ]
    return compare(data, {"s": found}, mode="direct")


def test_given_scores_when_compared_then_the_mark_refuses_a_twentieth_and_what_lost_its_documents():
    found = scored(lambda n: {"g": 0.3 + n / 200, "x": n / 200})
    told = found.arms[0].relevance
    assert told is not None
    assert (told.mark, told.questions) == (0.32, 100)
    assert 0.02 < told.refused < 0.06
    assert 0.6 < told.caught < 0.7
    screen = console()
    with screen.capture() as shown:
        screen.print(draw_evaluation(found))
    assert "rerank.min_relevance = 0.32" in " ".join(shown.get().split())


def test_given_no_reranker_or_answers_without_a_score_when_compared_then_there_is_no_mark():
    assert scored(lambda _: {}).arms[0].relevance is None
    assert scored(lambda n: {"x": 0.5} if n > 20 else {}).arms[0].relevance is None
