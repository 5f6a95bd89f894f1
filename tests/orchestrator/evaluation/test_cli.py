"""`ramify eval`: one document, a table, a page; exit codes; what it refuses. The search process is a stand-in."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.evaluation import direct as module
from orchestrator.evaluation.statistics import MEASURES
from tests.fakes.labelled import QUESTIONS, write_set

STAND_IN = Path(__file__).parents[2] / "fakes" / "direct_search.py"


@pytest.fixture(autouse=True)
def _stand_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "COMMAND", (sys.executable, str(STAND_IN)))


def evaluate(*arguments):
    return CliRunner().invoke(app, ["eval", *map(str, arguments)])


def test_given_two_strategies_when_run_then_one_document_has_both_and_their_difference(tmp_path):
    folder = write_set(tmp_path / "mini")
    done = evaluate(folder, "--direct", "--strategy", "default", "--strategy", "hybrid", "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["dataset"], document["questions"]) == ("mini", 3)
    good, bad = document["arms"]
    assert (good["strategy"], good["metrics"]) == ("default", dict.fromkeys(MEASURES, 1.0))
    assert bad["metrics"]["mrr@10"] == pytest.approx((0.5 + 1 + 1) / 3)
    assert good["latency_ms"] == {"p50": 2.5, "p95": 2.5}
    assert good["calls"] == {"llm": 0, "embed": 3, "rerank": 6, "rerank_documents": 150}
    assert [pair["metric"] for pair in document["pairs"]] == list(MEASURES)
    mrr = next(pair for pair in document["pairs"] if pair["metric"] == "mrr@10")
    assert (mrr["a"], mrr["b"], mrr["difference"]) == ("default", "hybrid", pytest.approx(-0.5 / 3, abs=1e-5))
    assert mrr["low"] <= mrr["difference"] <= mrr["high"] <= 0 < mrr["p"] <= 1
    assert (document["method"]["seed"], document["method"]["mode"]) == (20261120, "direct")
    assert "default: Keyword search only. (3 of 3 questions)" in document["warnings"]


def test_given_one_strategy_when_run_then_the_configured_default_is_measured_and_nothing_compared(tmp_path):
    document = json.loads(evaluate(write_set(tmp_path / "s"), "--direct", "--json", "--limit", 2).stdout)
    assert [arm["strategy"] for arm in document["arms"]] == ["default"]
    assert (document["questions"], document["pairs"]) == (2, [])


def test_given_a_plan_when_run_then_the_stored_subquestions_are_searched(tmp_path):
    folder = write_set(tmp_path / "s", qrels=[("q1", "d2", 1), ("q2", "d3", 1)])
    plain, planned = (
        json.loads(evaluate(folder, "--direct", "--json", *more).stdout)["arms"][0]["metrics"]["recall@5"]
        for more in ((), ("--plan", "decomposition.filled"))
    )
    assert (plain, planned) == (0.0, 1.0)


def test_given_a_run_when_shown_then_the_table_has_figures_intervals_and_the_method(tmp_path):
    done = evaluate(write_set(tmp_path / "mini"), "--direct", "--strategy", "default", "--strategy", "hybrid")
    assert done.exit_code == 0
    assert "mini: 3 questions" in done.stdout
    words = " ".join(done.stdout.split())
    assert "hybrid minus default" in words
    assert "seed 20261120" in words
    assert "percentile bootstrap" in words
    assert "warning: Only 3 questions: the intervals are rough." in done.stderr


def test_given_a_report_when_run_then_the_page_needs_nothing_else_and_escapes_what_others_wrote(tmp_path):
    hostile = "redis <script>alert(1)</script> & streams \u202e"
    asked = [{**QUESTIONS[0], "text": hostile}, *QUESTIONS[1:]]
    folder, page = write_set(tmp_path / "a<b>", questions=asked), tmp_path / "out.html"
    done = evaluate(folder, "--direct", "--strategy", "default", "--strategy", "hybrid", "--report", page)
    assert done.exit_code == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "redis &lt;script&gt;alert(1)" in text
    assert "\u202e" not in text
    assert "a&lt;b&gt;: 3 questions" in text
    assert not re.search(r"(src|href|url)\s*[=(]", text)
    sections = [part.partition("</h2>") for part in text.split("<h2>")[1:]]
    plots = {name: drawn for name, _, drawn in sections if "●" in drawn}
    assert list(plots) == [*MEASURES, "hybrid minus default, points of 100"]
    assert [drawn.count("●") for drawn in plots.values()] == [2] * len(MEASURES) + [len(MEASURES)]
    assert "█" in next(drawn for name, _, drawn in sections if name == "Latency")
    assert ET.fromstring(text.partition("\n")[2]).tag == "html"  # noqa: S314 - our own


def test_given_a_question_that_fails_when_run_then_it_counts_as_nothing_found_and_the_code_is_3(tmp_path):
    asked = [QUESTIONS[0], {"id": "q2", "text": "FAIL now"}, QUESTIONS[2]]
    done = evaluate(write_set(tmp_path / "s", questions=asked), "--direct", "--json")
    assert done.exit_code == 3
    arm = json.loads(done.stdout)["arms"][0]
    assert (arm["failed"], arm["metrics"]["recall@5"]) == (1, pytest.approx(2 / 3))
    assert "failed, and counts as found nothing: no such stage (1 of 3 questions)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--strategy", "adaptiv"), 2, "strategy: 'adaptiv' cannot be used: did you mean 'adaptive'?"),
        (("--strategy", "nope"), 2, "strategy: 'nope' cannot be used: .*known strategies: .*default"),
        (("--strategy", "default", "--strategy", "default"), 2, "it is given twice"),
        (("--plan", "steps"), 2, "--plan: 'steps' .* their fields: decomposition"),
        (("--queries", "missing.jsonl"), 2, "missing.jsonl: .* there is no such file"),
        (("--report", "no/such/page.html"), 2, "--report: .* there is no folder"),
        (("--limit", "0"), 2, "--limit"),
    ],
)
def test_given_bad_input_when_run_then_one_sentence_names_it(tmp_path, arguments, code, said):
    done = evaluate(write_set(tmp_path / "s"), "--direct", *arguments)
    assert done.exit_code == code
    assert re.search(said, " ".join(done.stderr.split()))
    assert done.stdout == ""


def test_given_a_process_that_dies_when_run_then_the_code_is_1(tmp_path):
    asked = [{"id": "q1", "text": "DIE now"}]
    done = evaluate(write_set(tmp_path / "s", questions=asked, qrels=[("q1", "d1", 1)]), "--direct")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "error: the search process ended with code 7: the store is on fire" in done.stderr


def test_given_no_stack_when_run_without_direct_then_it_says_how_to_start_one(tmp_path):
    done = evaluate(write_set(tmp_path / "s"))
    assert done.exit_code == 1
    assert "ramify up" in done.stderr
