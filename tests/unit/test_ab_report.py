"""What `ramify ab` may say, and what it may not: quality only where there are judgements."""

import json

import pytest

from orchestrator.cli import output
from orchestrator.cli.render.ab import draw_ab
from orchestrator.evaluation.ab import CACHED, UNJUDGED, report
from orchestrator.evaluation.labels import read_labels
from orchestrator.shadow.trial import digest
from shared.errors import InputError
from shared.models import Cost
from shared.models.ab import Comparison, Side


def side(strategy, *documents, ms=10.0, nothing=False, **cost):
    return Side(strategy=strategy, documents=documents, ms=ms, nothing=nothing, cost=Cost(**cost))


def compared(question, live, shadow, kind="simple_rule", **fields):
    values = {"job_id": f"job-{question}", "at": 1.0, "type": kind, "overlap": 0.5, "rbo": 0.6, **fields}
    return Comparison(question=digest(question), live=live, shadow=shadow, **values)


def some(count=40, kind="simple_rule"):
    """The live side has the judged document second, the shadow first; every fourth question the other way round."""
    for n in range(count):
        good, bad = ("x.md", f"{n}.md"), (f"{n}.md", "x.md")
        live, shadow = (good, bad) if n % 4 else (bad, good)
        yield compared(f"{kind} {n}", side("adaptive", *live, ms=20.0 + n), side("hybrid", *shadow, llm_calls=1), kind)


@pytest.fixture
def labels(tmp_path):
    def write(rows):
        path = tmp_path / "labels.jsonl"
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
        return read_labels(path)

    return write


def drawn(found) -> str:
    console = output.data_console()
    console.width = 80
    with console.capture() as caught:
        console.print(draw_ab(found))
    return caught.get()


def test_given_runs_without_judgements_when_reported_then_agreement_times_and_cost_and_no_word_of_better():
    found = report([*some(), *some(10, "enumeration")], {"offered": 60, "compared": 50, "skipped: partial": 4})
    (trial,) = found.trials
    whole, simple, listed = trial.rows
    assert ([row.type for row in trial.rows], whole.n, simple.n) == (["all", "simple_rule", "enumeration"], 50, 40)
    assert (whole.overlap.mean, whole.overlap.low, whole.rbo.mean, whole.same_first) == (0.5, 0.5, 0.6, 0.0)
    assert (simple.live.ms.p50, listed.shadow.cost.llm_calls) == (39.5, 10)
    assert all(row.quality is None for row in trial.rows)
    assert found.said == (CACHED, UNJUDGED)
    shown = " ".join(drawn(found).split())
    assert "which are better" in shown
    assert "nDCG" not in shown
    assert "wins" not in shown


def test_given_a_report_when_drawn_then_it_fits_80_columns_and_tells_what_became_of_every_job():
    found = report(list(some()), {"offered": 60, "compared": 40, "skipped: partial": 4}).model_copy(
        update={"strategy": "hybrid", "share": 0.25, "waiting": 6, "open": 1}
    )
    lines = drawn(found).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    shown = " ".join(" ".join(lines).split())
    assert "hybrid, on 25 % of the jobs" in shown
    assert "60 on offer, 40 compared, 6 waiting, 1 running, 4 skipped: partial, 9 dropped: too many waited" in shown
    assert "hybrid (shadow) against adaptive (live)" in shown


def test_given_judgements_when_reported_then_the_difference_has_an_interval_a_p_and_a_win_rate(labels):
    judged = labels([{"question": f"Simple_Rule  {n}", "relevant": [f"{n}.md"]} for n in range(30)])
    (trial,) = report(list(some()), {}, judged).trials
    quality = trial.rows[0].quality
    assert (quality.n, quality.wins, quality.losses, quality.ties) == (30, 22, 8, 0)
    second = 1 / 1.584962500721156
    assert quality.shadow == pytest.approx((22 + 8 * second) / 30, abs=1e-5)
    assert quality.difference == pytest.approx((22 - 8) * (1 - second) / 30, abs=1e-5)
    assert quality.low < quality.difference < quality.high
    assert quality.win_rate == pytest.approx(22 / 30, abs=1e-5)
    low, high = quality.win_rate_bounds
    assert 0.5 < low < 22 / 30 < high < 1
    assert quality.p < 0.05
    found = report(list(some()), {}, judged)
    assert UNJUDGED not in found.said
    assert any("on the 30 judged of 40 questions it is better by" in sentence for sentence in found.said)
    assert max(len(line.rstrip()) for line in drawn(found).splitlines()) <= 80


def test_given_few_judgements_when_reported_then_no_difference_is_claimed(labels):
    judged = labels([{"text": f"simple_rule {n}", "relevant": {f"{n}.md": 2, "other.md": 1}} for n in (1, 2, 3)])
    found = report(list(some()), {}, judged)
    assert found.trials[0].rows[0].quality.n == 3
    assert any("no difference is shown" in sentence for sentence in found.said)
    assert not any("better by" in sentence for sentence in found.said)


def test_given_judgements_of_other_questions_when_reported_then_it_says_that_none_was_asked(labels):
    found = report(list(some()), {}, labels([{"question": "another", "relevant": ["a"]}]))
    assert found.trials[0].rows[0].quality is None
    assert any("none of its questions is in the labels" in sentence for sentence in found.said)


def test_given_corpus_lines_when_judged_then_their_ids_are_enough_and_the_newest_answer_of_a_question_counts(labels):
    judged = labels([{"question": "q", "relevant": ["d7"]}])
    newest = compared("q", side("adaptive", "c.jsonl#d1"), side("hybrid", "c.jsonl#d7"))
    oldest = compared("q", side("adaptive", "c.jsonl#d7"), side("hybrid", "c.jsonl#d1"))
    quality = report([newest, oldest], {}, judged).trials[0].rows[0].quality
    assert (quality.n, quality.live, quality.shadow) == (1, 0.0, 1.0)


def test_given_two_live_strategies_when_reported_then_each_pair_is_a_trial_of_its_own():
    runs = [
        compared("a", side("deep", "a"), side("hybrid", "a")),
        *(compared(f"b{n}", side("adaptive", "a"), side("hybrid", "a")) for n in range(2)),
    ]
    assert [(trial.live, trial.rows[0].n) for trial in report(runs, {}).trials] == [("adaptive", 2), ("deep", 1)]


def test_given_questions_that_found_nothing_when_reported_then_they_are_counted_and_agree_on_nothing():
    runs = [compared("a", side("adaptive", nothing=True), side("hybrid", nothing=True), overlap=None, rbo=None)]
    row = report(runs, {}).trials[0].rows[0]
    assert (row.n, row.empty, row.overlap, row.same_first, row.live.nothing) == (1, 1, None, None, 1)
    assert "1 x nothing relevant" in drawn(report(runs, {}))


def test_given_no_runs_when_drawn_then_it_says_how_to_start():
    shown = " ".join(drawn(report([], {})).split())
    assert "set shadow.strategy and shadow.share" in shown
    assert "0 compared" in shown


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it holds no judgements"),
        ('{"question": "q"}', "line 1, relevant: None cannot be used: give relevant documents"),
        ('{"question": "q", "relevant": []}', "relevant"),
        ('{"question": "q", "relevant": "a.md"}', "relevant"),
        ('{"question": "q", "relevant": ["a", 7]}', "relevant"),
        ('{"question": "q", "relevant": {"a": 0}}', "a grade above 0"),
        ('{"question": "q", "relevant": {"a": "high"}}', "whole number"),
        ('{"question": " ", "relevant": ["a"]}', "line 1, question: ' ' cannot be used"),
        ('{"question": "q", "relevant": ["a"]}\n{"text": "Q ", "relevant": ["b"]}', "line 2: .* judged twice"),
        ('["q"]', "write an object"),
        ("{", "write valid JSON"),
    ],
)
def test_given_a_broken_label_when_read_then_one_sentence_names_the_place(tmp_path, content, said):
    path = tmp_path / "labels.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_labels(path)
