"""Per type: labels and rules, each type's figures, Holm over all of them, the arm that the routing table chooses."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.evaluation import direct as module
from orchestrator.evaluation.compare import of_types
from orchestrator.evaluation.dataset import LabelledQuestion
from orchestrator.evaluation.direct import DIRECT_ONLY, AdaptiveRunner, choose
from orchestrator.evaluation.labels import question_types
from orchestrator.evaluation.runner import ArmOutcome, ArmQuestion
from orchestrator.evaluation.statistics import MEASURES, holm, permutation_p
from shared.settings import load_settings
from tests.fakes.labelled import write_set

STAND_IN = Path(__file__).parents[2] / "fakes" / "direct_search.py"
MULTI_HOP = "Who is the manager of the author of the incident report?"
LIST = "List all notes tagged redis"


def question(name, text, **labels):
    return LabelledQuestion(id=name, text=text, labels=labels)


def test_given_labels_when_typed_then_they_stand_and_the_rules_read_the_rest():
    asked = [question("a", "anything", type="bridge"), question("b", LIST), question("c", "列出所有关于缓存的笔记")]
    found = question_types(asked, load_settings())
    assert found.types == {"a": "bridge", "b": "enumeration", "c": "enumeration"}
    assert found.source == "labels, else the rules"
    assert found.warnings == ("2 of 3 questions have no label type: the rules read them.",)


@pytest.mark.parametrize("label", [7, "", "x" * 41, "a\nb", "a\u202eb", None])
def test_given_a_label_that_no_table_can_show_when_typed_then_the_rules_read_the_question(label):
    assert question_types([question("a", LIST, type=label)], load_settings()).types == {"a": "enumeration"}


def test_given_a_question_that_no_rule_knows_when_typed_then_it_is_unsure():
    assert question_types([question("a", "Где лежит ключ от склада?")], load_settings()).types == {"a": "unsure"}


def test_given_more_types_than_a_table_holds_when_typed_then_the_small_ones_are_gathered_and_told():
    asked = [question(f"q{n}", "x", type=f"t{n % 20}") for n in range(24)]
    found = question_types(asked, load_settings())
    assert len(set(found.types.values())) == 13
    assert {found.types[f"q{n}"] for n in range(4)} == {f"t{n}" for n in range(4)}
    assert "There are 20 types" in found.warnings[0]


def table(*values):
    return np.repeat(np.array(values, dtype=float)[:, None], len(MEASURES), axis=1)


def test_given_two_types_when_compared_then_each_has_its_own_means_and_p_is_holms_over_both():
    types = ["up"] * 12 + ["same"] * 6
    a, b = table(*[0.2] * 12, *[0.5] * 6), table(*[0.6] * 12, *[0.5, 0.6, 0.4, 0.5, 0.7, 0.3])
    up, same = of_types(types, {"a": a, "b": b})
    assert ((up.type, up.questions), (same.type, same.questions)) == (("up", 12), ("same", 6))
    assert up.metrics["b"]["ndcg@10"] == pytest.approx(0.6)
    assert (up.pairs[0].difference, up.pairs[0].low, up.pairs[0].high) == pytest.approx((0.4, 0.4, 0.4))
    raw = [permutation_p((b - a)[:12])[0], permutation_p((b - a)[12:])[0]]
    assert [up.pairs[0].p, same.pairs[0].p] == pytest.approx(holm(raw), abs=1e-5)
    assert up.pairs[0].p == pytest.approx(2 * raw[0], abs=1e-5)
    assert up.pairs[0].p < 0.05 < same.pairs[0].p


def test_given_one_arm_when_compared_then_types_have_means_and_no_pairs():
    (only,) = of_types(["x"], {"a": table(0.25)})
    assert (only.metrics, only.pairs) == ({"a": dict.fromkeys(MEASURES, 0.25)}, ())


class Recorder:
    mode, warnings = "direct", ("said before",)

    def __init__(self):
        self.asked = []

    def answers(self, asked):
        for one in asked:
            self.asked.append(one)
            yield ArmOutcome(question_id=one.question_id, strategy=one.strategy, documents=("d1",))


def test_given_the_arm_adaptive_when_asked_directly_then_the_table_names_the_strategy_and_courtesies_find_nothing():
    settings = load_settings(routing={"types": {"multi_hop": {"strategy": "hybrid"}}})
    recorder = Recorder()
    runner = AdaptiveRunner(recorder, settings)
    asked = [
        ArmQuestion(question_id=name, text=text, strategy=arm)
        for name, text in (("hop", MULTI_HOP), ("thanks", "Thank you!"))
        for arm in ("default", "adaptive")
    ]
    found = {(one.question_id, one.strategy): one for one in runner.answers(asked)}
    assert [(one.question_id, one.strategy, one.runs) for one in recorder.asked] == [
        ("hop", "default", None), ("hop", "adaptive", "hybrid"), ("thanks", "default", None),
    ]  # fmt: skip
    assert found["thanks", "adaptive"].documents == ()
    assert "needs no retrieval" in found["thanks", "adaptive"].warnings[0]
    assert runner.warnings == ("said before", DIRECT_ONLY)


def test_given_a_table_when_a_question_is_sure_or_not_then_its_row_is_followed():
    settings = load_settings(
        routing={"types": {"unsure": {"strategy": "bm25_only"}, "simple_rule": {"strategy": "deep"}}}
    )
    assert choose("Где лежит ключ от склада?", settings).strategy == "bm25_only"
    assert choose("Who wrote The Art of Computer Programming?", settings).strategy == "deep"


@pytest.fixture
def _stand_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "COMMAND", (sys.executable, str(STAND_IN)))


def evaluate(*arguments):
    return CliRunner().invoke(app, ["eval", *map(str, arguments)])


@pytest.mark.usefixtures("_stand_in")
def test_given_two_arms_when_run_then_document_screen_and_page_have_each_type(tmp_path):
    asked = [
        {"id": "q1", "text": "redis streams order", "type": "lookup"},
        {"id": "q2", "text": "queues load", "type": "<b>"},
        {"id": "q3", "text": "消息 队列", "type": "lookup"},
    ]
    folder, page = write_set(tmp_path / "mini", questions=asked), tmp_path / "out.html"
    arms = ("--strategy", "hybrid", "--strategy", "adaptive")
    document = json.loads(evaluate(folder, "--direct", "--json", *arms).stdout)
    lookup, other = document["types"]
    assert ((lookup["type"], lookup["questions"]), (other["type"], other["questions"])) == (("lookup", 2), ("<b>", 1))
    assert lookup["metrics"]["adaptive"]["mrr@10"] == 1.0
    assert lookup["metrics"]["hybrid"]["mrr@10"] == 0.75
    mrr = next(pair for pair in lookup["pairs"] if pair["metric"] == "mrr@10")
    assert (mrr["a"], mrr["b"], mrr["difference"]) == ("hybrid", "adaptive", 0.25)
    assert document["method"]["types"] == "the label type"
    done = evaluate(folder, "--direct", "--report", page, *arms)
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "lookup" in done.stdout
    shown = page.read_text(encoding="utf-8")
    assert re.search(r"&lt;b&gt; +1 +ndcg@10", shown)
    assert "<b>" not in shown


@pytest.mark.usefixtures("_stand_in")
def test_given_one_arm_when_shown_then_each_type_has_its_means(tmp_path):
    asked = [{"id": "q1", "text": "redis streams order", "type": "lookup"}]
    done = evaluate(write_set(tmp_path / "s", questions=asked, qrels=[("q1", "d1", 1)]), "--direct")
    assert "lookup 1 100.0" in " ".join(done.stdout.split())
