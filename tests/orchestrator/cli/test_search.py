"""`find`, `search` and `session` on the command line: what is shown, and what reaches the client."""

import json

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from shared.models.request import ChatMessage, SessionIntent, TypedQuery
from tests.fakes.ramify_client import FakeRamify


@pytest.fixture
def client(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    fake = FakeRamify()
    monkeypatch.setattr("orchestrator.client.Ramify", fake.opened)
    return fake


def ramify(*arguments, **kwargs):
    return CliRunner().invoke(app, list(arguments), **kwargs)


def test_given_hits_when_found_then_they_stand_by_kind_with_what_is_around_them(client):
    done = ramify("find", "streams")
    assert done.exit_code == 0
    for shown in (
        "Resources (2)",
        "ramify://default/notes/1.md#0",
        "its directory: What the team knows",
        "links to: Back",
    ):
        assert shown in done.stdout
    assert "warning: Keyword search only." in done.stderr


def test_given_json_when_found_then_the_hits_and_their_groups_are_there(client):
    found = json.loads(ramify("find", "streams", "--json").stdout)
    assert [hit["chunk_id"] for hit in found["hits"]] == ["c1", "c2"]
    assert found["resources"][0]["related"][0]["uri"] == "ramify://default/notes/9.md"
    assert (found["memories"], found["total"], found["mode"]) == ([], 2, "bm25_only")


def test_given_options_when_searched_then_they_reach_the_client(client):
    ramify(
        "search",
        "q",
        "--target-uri",
        "notes/",
        "--related",
        "2",
        "--plan",
        "-n",
        "3",
        "--kind",
        "memory",
        "--tenant",
        "t",
    )
    assert client.options == {
        "plan": True, "related": 2, "target_uri": "notes/", "top_n": 3, "tenant": "t", "filters": {"kinds": ["memory"]},
    }  # fmt: skip


def test_given_talk_when_searched_then_it_says_that_nothing_needs_to_be_looked_up(client):
    done = ramify("search", "谢谢！")
    assert done.exit_code == 0
    assert "nothing needs to be looked up" in " ".join(done.stdout.split())
    assert "Results" not in done.stdout
    assert json.loads(ramify("search", "hi", "--json").stdout)["retrieval"] is False


def test_given_a_plan_when_asked_for_then_its_queries_and_what_each_found_are_shown(client):
    client.intent = SessionIntent(
        queries=(TypedQuery(query="q"), TypedQuery(query="Why: q", priority=2)), standalone="q in context", by="llm"
    )
    done = ramify("search", "q", "--plan")
    assert "understood as q in context" in done.stdout
    assert "2 of 2 leaves answered · planned by the LLM" in done.stdout
    assert "Plan" in done.stdout
    assert "Note 2" in done.stdout
    assert "Plan" not in ramify("search", "q").stdout


def test_given_a_partial_answer_when_searched_then_the_exit_code_says_so(client):
    client.ends = lambda _: "partial"
    assert ramify("search", "how do streams work?").exit_code == 3


def test_given_a_file_when_searched_then_its_conversation_is_read(client, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "Redis streams?"}]}), encoding="utf-8")
    done = ramify("search", "and then?", "--session", str(path), "--json")
    assert json.loads(done.stdout)["standalone"] == "and then (Redis streams)"


def test_given_a_kept_conversation_when_searched_then_it_can_remember_the_question(client):
    ramify("search", "how do streams work?", "--session-id", "chat", "--remember")
    kept = (
        ChatMessage(role="user", content="how do streams work?"),
        ChatMessage(role="assistant", content="1. Note 1"),
    )
    assert client.session("chat").load().messages == kept
    ramify("search", "and groups?", "--session-id", "chat")
    assert len(client.session("chat").load().messages) == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--session", "nowhere.json"), "--session"),
        (("--session", "x", "--session-id", "y"), "--session-id"),
        (("--remember",), "--remember"),
    ],
)
def test_given_options_that_do_not_fit_when_searched_then_one_sentence_says_so(client, arguments, named):
    done = ramify("search", "q", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {named}")
    assert done.stderr.count("\n") == 1


def test_given_a_session_when_added_shown_and_dropped_then_each_says_what_it_holds(client):
    assert json.loads(ramify("session", "add", "chat", "你好\x1b[31m", "--json").stdout)["messages"] == 1
    assert ramify("session", "add", "chat", "-", "--summary", input="about caches\n").exit_code == 0
    shown = ramify("session", "show", "chat").stdout
    assert "about caches" in shown
    assert "你好" in shown
    assert "\x1b" not in shown
    assert json.loads(ramify("session", "show", "chat", "--json").stdout)["summary"] == "about caches"
    assert json.loads(ramify("session", "drop", "chat", "--json").stdout)["dropped"] is True
    assert "holds nothing" in ramify("session", "drop", "chat").stderr


@pytest.mark.parametrize("command", ["add", "show", "drop"])
def test_given_help_when_asked_then_every_session_command_has_it(command):
    assert "--json" in ramify("session", command, "--help").stdout
