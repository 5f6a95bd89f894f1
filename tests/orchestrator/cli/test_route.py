"""`ramify route` needs no stack: the decision for people and for programs, the LLM asked over HTTP if need be."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Reply

UNSURE = "tungsten, if ever; or the other, as before"


def ramify(*arguments, **kwargs):
    return CliRunner().invoke(app, list(arguments), **kwargs)


def test_given_a_question_when_routed_then_type_intent_confidence_and_rules_are_shown():
    done = ramify("route", "列出所有还在使用 Java 8 的服务")
    assert done.exit_code == 0
    for word in ("enumeration", "a complete list", "general", "zh.list_all", "列出所有"):
        assert word in done.stdout


def test_given_json_when_routed_then_it_is_one_document_with_the_reasons():
    done = ramify("route", "-", "--json", input="When did the composer of the opera Vanessa die?\n")
    found = json.loads(done.stdout)
    assert (found["type"], found["hops"], found["intent"]) == (
        "complex_reasoning", "multi_hop", "temporal",
    )  # fmt: skip
    assert "en.relation_then_fact" in {reason["rule"] for reason in found["reasons"]}
    assert found["by"] == "rules"


def test_given_chatter_when_routed_then_it_says_that_nothing_is_retrieved():
    assert "no retrieval needed" in ramify("route", "hi there, thanks!").stdout


@pytest.mark.parametrize(
    ("question", "row", "planner", "strategy", "aggregator"),
    [
        ("Which port does the exporter listen on?", "simple_rule", "original", "default", "simple"),
        ("When did the composer of the opera Vanessa die?", "multi_hop", "nested", "multihop", "reasoning"),
        ("你好", "none", "none", "default", "simple"),
        (UNSURE, "unsure", "decompose", "default", "simple"),
    ],
)
def test_given_a_question_when_routed_then_the_row_of_the_table_is_shown(question, row, planner, strategy, aggregator):
    found = json.loads(ramify("route", question, "--json").stdout)
    shown = ramify("route", question).stdout
    for name, value in (("planner", planner), ("strategy", strategy), ("aggregator", aggregator)):
        assert found[name] == value
        assert value in shown
    assert found["row"] == row
    assert f"routing.types.{row}" in shown


def test_given_a_changed_table_when_routed_then_it_is_followed():
    row = ("--set", "routing.types.simple_rule.strategy=hybrid", "--set", "routing.types.simple_rule.planner=decompose")
    found = json.loads(ramify(*row, "route", "Which port does the exporter listen on?", "--json").stdout)
    assert (found["strategy"], found["planner"]) == ("hybrid", "decompose")
    refused = ramify("--set", "routing.types.simple_rule.strategy=hybird", "route", "x")
    assert refused.exit_code == 2
    assert "routing.types.simple_rule.strategy" in refused.stderr
    assert "'hybrid'" in refused.stderr


def test_given_a_strategy_when_routed_then_it_overrides_and_an_unknown_one_is_refused():
    assert json.loads(ramify("route", "hello", "--strategy", "deep", "--json").stdout)["by"] == "request"
    refused = ramify("route", "hello", "--strategy", "deeep")
    assert refused.exit_code == 2
    assert "deep" in refused.stderr


@pytest.mark.parametrize("question", ["   ", "x" * 4001, "a\x00b"])
def test_given_a_question_that_cannot_be_taken_when_routed_then_one_sentence_says_why(question):
    done = ramify("route", question)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: question")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("switch", "calls"), [((), 1), (("--no-llm",), 0)])
def test_given_an_llm_when_the_rules_are_unsure_then_it_is_asked_unless_told_not_to(switch, calls):
    with FakeOpenAI() as server:
        server.script("chat", Reply(text="<route><type>enumeration</type><intent>general</intent></route>"))
        llm = ("--set", "llm_model=m", "--set", f"llm_base_url={server.url}")
        found = json.loads(ramify(*llm, "route", UNSURE, "--json", *switch).stdout)
        assert len(server.requests()) == calls
    assert found["by"] == ("llm" if calls else "rules")
    assert found["cost"]["llm_calls"] == calls


def test_given_route_when_run_then_celery_qdrant_and_redis_are_not_imported():
    program = (
        "import sys\nfrom orchestrator.cli.main import app\n"
        "try:\n    app(['route', 'hello'])\nexcept SystemExit:\n    pass\n"
        "sys.exit(','.join({'celery', 'qdrant_client', 'qdrant_edge', 'redis'} & set(sys.modules)) or 0)"
    )
    path = ":".join(part for part in sys.path if part)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env={"PYTHONPATH": path}, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
