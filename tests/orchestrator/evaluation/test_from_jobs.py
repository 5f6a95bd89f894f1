"""Kept jobs asked again: how far the answers agree, what is shown of it, and what the command refuses."""

import re
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.cli.render.eval_page import jobs_page
from orchestrator.cli.render.evaluation import draw_jobs
from orchestrator.evaluation.dataset import LabelledQuestion
from orchestrator.evaluation.from_jobs import KEPT, KeptJobs, compare_jobs, overlap
from orchestrator.evaluation.pipeline import EVAL_KEY_PREFIX, Pipeline, without_run_options
from orchestrator.evaluation.runner import ArmOutcome, ArmQuestion
from shared.models import Cost, JobRequest
from tests.fakes.ramify_client import FakeRamify

QUESTIONS = ("why?", "how <b>?", "who?")


def outcomes(strategy, *documents, ms=10.0, **fields):
    return tuple(
        ArmOutcome(question_id=f"j{place}", strategy=strategy, documents=tuple(found), ms=ms * (place + 1), **fields)
        for place, found in enumerate(documents)
    )


def kept(*documents, **fields):
    questions = tuple(
        LabelledQuestion(id=f"j{n}", text=text, labels={}) for n, text in enumerate(QUESTIONS[: len(documents)])
    )
    return KeptJobs(questions, {}, outcomes(KEPT, *documents), **fields)


def test_given_two_lists_when_overlapped_then_shared_documents_count_once_whatever_their_order():
    assert overlap("abcd", "dcxy") == 0.5
    assert overlap("ab", "abcd") == 0.5
    assert overlap("abc", "xyz") == 0
    assert overlap([*"abcdefghij", "k"], [*"klmnopqrst", "a"]) == 0, "beyond the tenth rank nothing counts"
    assert overlap("", "") is None
    assert overlap("", "a") == 0


def test_given_two_strategies_when_compared_then_every_pair_of_columns_has_its_agreement_and_cost():
    cost = Cost(llm_calls=1, llm_tokens_in=5, llm_tokens_out=2, rerank_documents=4)
    arms = {
        "same": outcomes("same", "abc", "xy", "m", ms=20.0),
        "other": outcomes("other", "acd", "yx", "m", cost=cost),
    }
    found = compare_jobs(kept("abc", "xy", "m"), arms)
    pairs = {(one.a, one.b): one for one in found.agreements}
    assert list(pairs) == [(KEPT, "same"), (KEPT, "other"), ("same", "other")]
    same, other = pairs[KEPT, "same"], pairs[KEPT, "other"]
    assert (same.n, same.overlap, same.low, same.high, same.same_first, same.differ) == (3, 1, 1, 1, 1, 0)
    assert other.overlap == pytest.approx((2 / 3 + 1 + 1) / 3, abs=1e-6)
    assert other.low <= other.overlap <= other.high
    assert (other.same_first, other.differ) == (pytest.approx(2 / 3, abs=1e-6), 2)
    assert pairs["same", "other"].overlap == other.overlap
    first, second, third = found.columns
    assert (first.latency_ms.p50, second.latency_ms.p50, third.calls.llm, third.llm_tokens) == (20.0, 40.0, 3, 21)
    assert [(one.job_id, one.overlap["same"]) for one in found.differences] == [("j0", 1.0), ("j1", 1.0)]
    assert found.differences[0].documents["other"] == ("a", "c", "d")


def test_given_a_question_that_fails_or_finds_nothing_when_compared_then_it_does_not_count_as_disagreement():
    failed = ArmOutcome(question_id="j1", strategy="s", error="no store")
    good = outcomes("s", "a", "b", "")
    found = compare_jobs(kept("a", "b", ""), {"s": (good[0], failed, good[2])})
    (agreement,) = found.agreements
    assert (agreement.n, agreement.overlap) == (1, 1.0)
    assert [column.failed for column in found.columns] == [0, 1]
    assert found.differences == ()
    assert "s: failed, and is left out: no store (1 of 3 questions)" in found.warnings


def test_given_nothing_to_agree_on_when_compared_then_it_says_so():
    (agreement,) = compare_jobs(kept(""), {"s": outcomes("s", "")}).agreements
    assert (agreement.n, agreement.overlap, agreement.differ) == (0, 0.0, 0)


def test_given_differences_when_shown_then_screen_and_page_have_them_and_the_page_is_escaped():
    found = compare_jobs(
        kept(["n/1.md"], ["n/<b>.md"], left_out={"partial": 2}),
        {"bm25_only": outcomes("bm25_only", ["n/1.md"], ["n/2.md"]), "deep": outcomes("deep", ["n/1.md"], [])},
        ["said before"],
    )
    console = Console(width=80, markup=False)
    with console.capture() as shown:
        console.print(draw_jobs(found))
    words = " ".join(shown.get().split())
    assert "2 questions of kept jobs, asked again left out: 2 partial" in words
    assert "kept answer / bm25_only 2 50.0 0.0-100.0 50.0 1" in words
    assert "j1 how <b>? 0.0 0.0" in words
    assert "Agreement is not quality" in words
    page = jobs_page(found)
    assert "<b>" not in page
    assert "n/&lt;b&gt;.md" in page
    assert "said before" in page
    assert page.count("●") == 3
    assert ET.fromstring(page.partition("\n")[2]).tag == "html"  # noqa: S314 - our own


def test_given_a_kept_job_when_asked_again_then_only_strategy_and_the_way_it_is_run_change():
    request = JobRequest(
        question="why?", strategy="deep", tenant="a", top_n=5, lane="interactive", idempotency_key="x", summary=True
    )
    client = FakeRamify()
    runner = Pipeline(client, requests={"j0": request})
    asked = [ArmQuestion(question_id="j0", text="why?", strategy=name) for name in ("keyword", "adaptive")]
    found = list(runner.answers(asked))
    first, second = client.requests.values()
    assert (first.strategy, second.strategy) == ("keyword", None)
    assert without_run_options(first) == without_run_options(request)
    assert (first.tenant, first.top_n, first.lane, first.summary, first.decompose) == ("a", 5, "batch", False, True)
    assert first.idempotency_key.startswith(EVAL_KEY_PREFIX)
    assert first.idempotency_key != second.idempotency_key
    assert found[0].documents == ("notes/1.md",)
    assert "kept jobs" in runner.warnings[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "DATASET: .* name a folder with labelled questions, or give --from-jobs N"),
        (("--from-jobs", "0"), "--from-jobs"),
        (("--from-jobs", "3", "--strategy", "nope"), "strategy: 'nope' cannot be used: known strategies"),
        (("--from-jobs", "3", "--direct"), "--from-jobs: '3' cannot be used: it does not go with --direct"),
        (("folder", "--from-jobs", "3"), "--from-jobs: '3' cannot be used: it does not go with DATASET"),
        (("folder", "--tenant", "a"), "DATASET: 'folder' cannot be used: it does not go with --tenant"),
    ],
)
def test_given_options_that_do_not_work_together_when_run_then_one_sentence_names_them(
    tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["eval", *arguments])
    assert done.exit_code == 2
    assert re.search(said, " ".join(done.stderr.split()))
    assert done.stdout == ""
