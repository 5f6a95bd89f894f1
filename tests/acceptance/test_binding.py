"""Plans whose leaves depend on each other, on real stacks: order, counts, what is written in, a killed pool."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from orchestrator.client import Ramify
from shared.models import Answer, Node
from shared.models.replay import ReplayStage
from tests.acceptance.conftest import NOTES, ingested, launched
from tests.fakes.openai_server import FakeOpenAI

PLAN = [
    "Which system lost messages?",
    {"query": "What was decided about #1?", "depends_on": [1]},
    "How are queues drained?",
    {"query": "Who owns it?", "depends_on": [2, 3]},
]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ramify]:
    """A stack that looks for lost work every few seconds."""
    for client in launched(tmp_path_factory.mktemp("binding"), jobs={"redrive_after_s": 3}):
        yield ingested(client, NOTES / "en", NOTES / "zh" / "incidents")


def answer_of(client: Ramify, question: str, **options: Any) -> Answer:
    job_id = client.submit(question, **options)
    assert client.wait(job_id, 60).state == "done"
    return client.result(job_id)


def node_of(answer: Answer, node_id: str) -> Node:
    return next(node for node in answer.tree if node.id == node_id)


def test_given_a_dependent_plan_when_run_then_each_leaf_follows_those_it_waits_for(stack: Ramify) -> None:
    job_id = stack.submit("What was decided about the system that lost messages?", subqueries=PLAN)
    events = list(stack.stream(job_id, 60))
    answer = stack.result(job_id)

    assert answer.coverage == "5 of 5 leaves answered"
    ended = [event.data["id"] for event in events if event.type == "leaf" and event.data["status"] == "done"]
    assert sorted(ended) == ["0.0", "0.1", "0.2", "0.3", "0.4"], "each leaf once"
    assert ended.index("0.1") < ended.index("0.2") < ended.index("0.4")
    bound = [json.loads(event.data["node"]) for event in events if event.type == "bound"]
    assert [(node["id"], node["bound_by"]) for node in bound] == [("0.2", "names"), ("0.4", "names")]
    second = node_of(answer, "0.2")
    assert second.asked == "What was decided about #1?"
    assert "#1" not in second.query
    assert 1 < len(second.variants) <= 6
    first = next(leaf for leaf in answer.leaves if leaf.node_id == "0.1")
    names = [query.removeprefix("What was decided about ").removesuffix("?") for query in second.variants]
    passages = " ".join(f"{hit.title} {hit.text}" for hit in first.hits[:3])
    assert all(name in passages for name in names)

    for start in ReplayStage:
        made = stack.replay(job_id, start)
        assert stack.wait(made.job_id, 60).state == "done"
        assert stack.manifest(made.job_id).digest == made.digest, start


def test_given_a_nested_question_without_an_llm_when_asked_then_the_rules_bind_it(stack: Ramify) -> None:
    answer = answer_of(stack, "《ADR-009》的作者的团队叫什么？")
    assert [(node.id, node.depends_on) for node in answer.tree] == [("0.0", ()), ("0.1", ()), ("0.2", ("0.1",))]
    assert not answer.partial


def test_given_a_name_that_was_not_found_when_asked_then_it_is_searched_once_more_in_the_same_job(
    stack: Ramify,
) -> None:
    job_id = stack.submit("Who leads the team that owns Quokka Vault?")
    events = list(stack.stream(job_id, 60))
    answer = stack.result(job_id)

    added = [node for node in answer.tree if node.gap]
    assert {node.facet.value for node in added} == {"gap"}
    assert 1 <= len(added) <= 4
    assert "Quokka Vault" in {node.gap.what for node in added if node.gap}
    ended = [event.data["id"] for event in events if event.type == "leaf" and event.data["status"] == "done"]
    assert sorted(ended) == sorted(leaf.node_id for leaf in answer.leaves), "each leaf once"
    assert [event.data["state"] for event in events if event.type == "state"].count("merging") == 1
    gap = next(gap for gap in answer.gaps if gap.what == "Quokka Vault")
    assert gap.searched
    assert not gap.closed
    assert gap.text == "The name “Quokka Vault”: searched again, and still open."
    assert not answer.partial


def test_given_leaves_that_find_nothing_when_bound_then_those_that_wait_run_without_and_the_answer_says_so(
    stack: Ramify,
) -> None:
    plan = ["who leads it?", "where does #1 work?"]
    answer = answer_of(stack, "where?", subqueries=plan, filters={"tags": ["no such tag"]})
    assert answer.coverage == "3 of 3 leaves answered"
    assert node_of(answer, "0.2").bound_by == "nothing"
    assert any("0.2 runs without the answer to 0.1: it found nothing" in warning for warning in answer.warnings)


def test_given_a_killed_rerank_pool_when_leaves_wait_then_every_job_ends_with_all_its_leaves(stack: Ramify) -> None:
    jobs = [stack.submit(f"Job {n}: what was decided about lost messages?", subqueries=PLAN) for n in range(12)]
    time.sleep(0.3)
    for pid in _pool(stack, "rerank"):
        os.kill(pid, signal.SIGKILL)
    ended = [stack.wait(job_id, 120) for job_id in jobs]
    assert {(one.state, one.leaves_total, one.leaves_done, one.leaves_failed) for one in ended} == {("done", 5, 5, 0)}


def _pool(client: Ramify, name: str) -> list[int]:
    """The worker processes of a pool of this stack."""
    folder, found = str(client.settings.data_dir), []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("RAMIFY_DATA_DIR") == folder
            if ours and "worker" in process.cmdline() and any(name in part for part in process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    assert found, f"no pool {name}"
    return found


def test_given_an_llm_when_bound_then_the_answer_is_read_off_the_passages(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    def reader(body: dict[str, Any]) -> str:
        prompt = body["messages"][-1]["content"]
        return "<answer>RabbitMQ</answer>" if "<passages>" in prompt and "RabbitMQ" in prompt else "<unknown/>"

    fake.handle("chat", reader)
    answer = answer_of(
        with_models, "What is the limit?", subqueries=["Which broker has quorum queues?", "What are limits of #1?"]
    )
    node = node_of(answer, "0.2")
    assert (node.query, node.bound_by, node.variants) == ("What are limits of RabbitMQ?", "answer", ())
    assert answer.cost.llm_calls >= 1
