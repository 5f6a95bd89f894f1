"""`ramify plan`, `ask --plan` and the budget options: what is shown, written, asked for and refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.invocation import Invocation
from orchestrator.cli.main import app
from shared.models import JobRequest
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.ramify_client import FakeRamify

QUESTION = "What are the reasons and the risks of moving our message queue, and how do we roll it back?"
CHINESE = "为什么要迁移消息队列，有哪些风险，如何回滚？"


@pytest.fixture
def client(monkeypatch) -> FakeRamify:
    from contextlib import contextmanager

    fake = FakeRamify()

    @contextmanager
    def opened(*_):
        yield fake

    monkeypatch.setattr(Invocation, "client", opened)
    return fake


def ramify(*arguments: str, **kwargs):
    return CliRunner().invoke(app, list(arguments), **kwargs)


def only(client: FakeRamify) -> JobRequest:
    (request,) = client.requests.values()
    return request


@pytest.mark.parametrize("question", [QUESTION, CHINESE])
def test_given_a_question_when_planned_then_tree_and_plan_file_agree(question: str) -> None:
    done = ramify("plan", question, "--json", "--out", "plan.toml", "--tag", "queue")
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    kept = tomllib.loads(Path("plan.toml").read_text(encoding="utf-8"))
    assert kept["question"] == question
    assert kept["filters"] == {"tags": ["queue"]}
    assert [entry["query"] for entry in kept["subqueries"]] == [node["query"] for node in shown["tree"][1:]] != []
    again = json.loads(ramify("plan", "--plan", "plan.toml", "--json").stdout)
    for node in (*again["tree"], *shown["tree"]):
        del node["budget"]  # room for growing, which a plan of one's own does not use
    assert {node.pop("by") for node in again["tree"][1:]} == {"request"}, "who edits a plan means it: it weighs whole"
    assert {node.pop("by") for node in shown["tree"][1:]} == {"rules"}
    for field in ("tree", "filters"):
        assert again[field] == shown[field]


def test_given_prices_when_planned_with_an_llm_then_calls_tokens_and_money_are_ranges_by_stage() -> None:
    with FakeOpenAI() as fake:
        llm = ["--set", f"llm_base_url={fake.url}", "--set", "llm_model=fake"]
        money = ["--set", 'prices.llm_input={"fake": 1.0}', "--set", 'prices.llm_output={"fake": 2.0}']
        priced = ramify(*llm, *money, "plan", QUESTION, "--summary", "--json")
        asked = len(fake.requests())
        bare = ramify(*llm, "plan", QUESTION, "--summary")
        free = ramify(*llm, "plan", QUESTION, "--no-llm", "--json")
        assert asked >= 1
        assert len(fake.requests()) == 2 * asked, "--no-llm asks nothing"
    found = json.loads(priced.stdout)
    rows = {row["stage"]: row for row in found["estimate"]["rows"] if row["what"] == "llm fake"}
    assert rows["planning"]["calls"][0] == 0, "an identical decomposition may be kept"
    assert rows["planning"]["calls"][1] >= 2
    assert rows["summary"]["calls"] == [0, 1]
    assert rows["summary"]["cost"][1] == pytest.approx(
        (rows["summary"]["tokens_in"][1] * 1.0 + rows["summary"]["tokens_out"][1] * 2.0) / 1e6
    )
    assert found["cost"]["llm_calls"] == asked
    assert "planning may ask the LLM (fake at 127.0.0.1): --no-llm leaves it out" in bare.stderr
    assert "No price: fake" in bare.stdout
    assert json.loads(free.stdout)["cost"]["llm_calls"] == 0


def test_given_a_list_when_planned_then_the_question_stands_alone_and_no_model_is_asked_to_split_it() -> None:
    with FakeOpenAI() as fake:
        llm = ["--set", f"llm_base_url={fake.url}", "--set", "llm_model=fake"]
        shown = json.loads(ramify(*llm, "plan", "List all notes tagged redis", "--json").stdout)
        assert fake.requests() == []
    assert [node["query"] for node in shown["tree"]] == ["List all notes tagged redis"]
    (warning,) = shown["warnings"]
    assert warning.startswith("A complete list is read in slices of the corpus")


def test_given_chatter_when_planned_then_it_says_that_nothing_is_looked_up() -> None:
    done = ramify("plan", "hello there!")
    assert done.exit_code == 0
    assert "Nothing has to be looked up" in " ".join(done.stdout.split())


def test_given_a_plan_when_asked_then_its_question_and_entries_are_submitted(client: FakeRamify) -> None:
    Path("p.json").write_text(
        json.dumps({"question": "Who?", "subqueries": [{"id": 2, "query": "a #5"}, {"id": 5, "query": "b"}]}),
        encoding="utf-8",
    )
    assert ramify("ask", "--plan", "p.json", "--detach").exit_code == 0
    assert only(client).question == "Who?"
    assert [(entry.query, entry.depends_on) for entry in only(client).subqueries] == [("b", ()), ("a #1", (1,))]
    client.requests.clear()
    assert ramify("ask", "Mine?", "--plan", "p.json", "--detach").exit_code == 0
    assert only(client).question == "Mine?"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('question = "q"\n[[subqueries]]\nquery = "a"\ndepends_on = [4]', "entry 1, depends_on: 4"),
        ("question: q", "neither TOML nor JSON"),
        ('[[subqueries]]\nquery = "a"', "there is no question"),
        ("\n".join(['question = "q"', *(['[[subqueries]]\nquery = "a"'] * 12)]), "'12 leaves'"),
    ],
)
def test_given_a_plan_of_nonsense_when_asked_then_it_ends_with_2_and_nothing_is_enqueued(
    client: FakeRamify, text: str, said: str
) -> None:
    Path("p.toml").write_text(text, encoding="utf-8")
    done = ramify("ask", "--plan", "p.toml")
    assert done.exit_code == 2
    assert said in done.stderr
    assert "p.toml" in done.stderr
    assert done.stderr.count("\n") == 1
    assert client.requests == {}


def test_given_neither_question_nor_plan_when_asked_then_it_ends_with_2(client: FakeRamify) -> None:
    assert ramify("ask").exit_code == 2
    assert client.requests == {}


def test_given_budgets_when_asked_then_they_stand_in_the_request(client: FakeRamify) -> None:
    limits = ["--max-calls", "0", "--max-tokens", "900", "--max-seconds", "2.5"]
    assert ramify("ask", "why?", "--detach", *limits).exit_code == 0
    assert only(client).limits() == {"max_calls": 0, "max_tokens": 900, "max_seconds": 2.5}


def test_given_no_seconds_when_asked_then_the_sentence_says_what_zero_would_mean(client: FakeRamify) -> None:
    done = ramify("ask", "why?", "--max-seconds", "0")
    assert done.exit_code == 2
    assert "max_seconds: 0.0 cannot be used: leaves no time to answer: give more than 0 seconds" in done.stderr
    assert client.requests == {}


def test_given_budgets_when_a_batch_is_enqueued_then_the_jobs_and_the_batch_have_their_own(client: FakeRamify) -> None:
    Path("q.jsonl").write_text('one?\n{"question": "two?", "max_calls": 7}\n', encoding="utf-8")
    done = ramify("batch", "q.jsonl", "--max-calls", "2", "--batch-max-calls", "5", "--batch-max-seconds", "60")
    assert done.exit_code == 0, done.output
    assert [request.max_calls for request in client.requests.values()] == [2, 7]
    assert client.budget == {"max_calls": 5, "max_seconds": 60}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--batch-max-seconds", "0"], "batch budget max_seconds: 0"),
        (["--max-cost", "1", "--set-llm"], "the model 'm' has no price"),
        (["--batch-max-cost", "1", "--set-llm"], "the model 'm' has no price"),
    ],
)
def test_given_a_budget_that_cannot_be_kept_when_a_batch_is_enqueued_then_there_is_no_batch(
    client: FakeRamify, options: list[str], said: str
) -> None:
    if "--set-llm" in options:
        client.settings = client.settings.model_copy(update={"llm_model": "m", "llm_base_url": "http://llm/v1"})
        options.remove("--set-llm")
    Path("q.jsonl").write_text("one?\n", encoding="utf-8")
    done = ramify("batch", "q.jsonl", *options)
    assert done.exit_code == 2
    assert said in done.stderr
    assert client.batches == {}
