"""Answers by aspects, by steps and as complete lists, on a real stack, in both languages."""

from __future__ import annotations

import re

import pytest

from orchestrator.client import Ramify
from shared.models import Answer
from tests.fakes.openai_server import FakeOpenAI

PLAN = ["Which system lost order messages?", {"query": "What was decided about #1?", "depends_on": [1]}]


def asked(client: Ramify, question: str, **options: object) -> Answer:
    job_id = client.submit(question, **options)
    assert client.wait(job_id, 60).state == "done"
    return client.result(job_id)


def is_cited(answer: Answer) -> bool:
    """Every number in the answer is a result, and has its source with a quote that stands in it."""
    texts = [answer.summary.text, *(step.text for step in answer.steps)]
    numbers = {int(number) for text in texts for number in re.findall(r"\[(\d+)\]", text)}
    known = {one.number: one for one in answer.summary.citations}
    return numbers == set(known) and all(
        one.quote in answer.results[number - 1].text for number, one in known.items() if one.quote
    )


@pytest.mark.parametrize(
    "question",
    ["Compare Redis Streams and RabbitMQ for our order pipeline.", "缓存穿透、击穿和雪崩有什么区别，各怎么处理？"],
)
def test_given_several_aspects_when_asked_then_a_section_each_with_its_sources(ramify: Ramify, question: str) -> None:
    answer = asked(ramify, question)
    assert answer.aggregator == "reasoning"
    assert len(answer.steps) >= 3
    assert {step.kind for step in answer.steps} == {"aspect"}
    assert all(step.passages or step.gap for step in answer.steps)
    assert is_cited(answer)


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("《ADR-009》的作者的团队叫什么？", {}),
        ("What was decided about the system that lost order messages?", {"subqueries": PLAN}),
    ],
)
def test_given_facts_that_need_each_other_when_asked_then_steps_show_how_one_led_to_the_next(
    ramify: Ramify, question: str, options: dict[str, object]
) -> None:
    answer = asked(ramify, question, **options)
    first, second = answer.steps
    assert answer.aggregator == "reasoning"
    assert (first.kind, first.found_by, second.after) == ("fact", "names", (1,))
    node = next(node for node in answer.tree if node.id == second.node_id)
    assert first.found == node.written[first.node_id][: len(first.found)]
    assert second.planned == node.asked
    assert second.question in (node.variants or (node.query,))
    assert is_cited(answer)


@pytest.mark.parametrize("question", ["List all notes about Redis", "列出所有关于缓存的笔记"])
def test_given_a_list_when_asked_then_every_row_has_its_source(ramify: Ramify, question: str) -> None:
    answer = asked(ramify, question)
    assert answer.aggregator == "enumeration"
    assert answer.table is not None
    assert answer.table.scanned == answer.table.planned > 0
    assert answer.table.matched >= len(answer.table.rows) > 3
    assert all(row.path and row.uri for row in answer.table.rows)
    assert answer.table.rows[0].path in answer.summary.text


def test_given_a_greeting_when_asked_then_nothing_is_told_of_steps_or_lists(ramify: Ramify) -> None:
    answer = asked(ramify, "hello")
    assert (answer.retrieval, answer.steps, answer.table) == (False, (), None)


def test_given_an_llm_when_a_plan_is_asked_then_the_conclusion_is_its_own_and_the_steps_stand(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    def model(body: dict[str, object]) -> str:
        prompt = body["messages"][-1]["content"]  # type: ignore[index]
        if "<steps>" in prompt and "<memories>\n" in prompt:
            return "RabbitMQ has quorum queues [1]."
        return "<answer>RabbitMQ</answer>" if "<passages>" in prompt and "RabbitMQ" in prompt else "<unknown/>"

    fake.handle("chat", model)
    plan = ["Which broker runs quorum queues?", "What are limits of #1?"]
    answer = asked(with_models, "What is the limit?", subqueries=plan, summary=True)
    said = re.fullmatch(r"RabbitMQ has quorum queues \[(\d+)\]\.", answer.summary.text)
    assert said is not None
    assert answer.summary.kind == "llm"
    assert "quorum queues" in answer.results[int(said[1]) - 1].full_text, answer.results[int(said[1]) - 1].full_text
    assert (answer.steps[0].found, answer.steps[0].found_by) == (("RabbitMQ",), "answer")
    assert is_cited(answer)
