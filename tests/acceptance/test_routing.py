"""Questions of every type as jobs of a running stack: each takes its own way, and says which."""

from __future__ import annotations

import json

import pytest
import redis

from orchestrator.client import Ramify
from shared.models import Answer, Facet
from tests.fakes.openai_server import FakeOpenAI

MULTI_HOP = "Which team owns the service that writes to the invoices topic?"


def answer_to(ramify: Ramify, question: str, **options: object) -> Answer:
    job_id = ramify.submit(question, **options)
    status = ramify.wait(job_id, 60)
    assert status.state == "done", status.error
    return ramify.result(job_id)


@pytest.mark.parametrize(
    ("question", "said"), [("hi there, thanks!", "nothing was retrieved"), ("你好，谢谢", "没有进行检索")]
)
def test_given_chatter_when_asked_then_nothing_is_retrieved_and_the_answer_says_so(
    ramify: Ramify, question: str, said: str
) -> None:
    answer = answer_to(ramify, question)
    assert (answer.retrieval, answer.verdict) == (False, "no retrieval needed")
    assert answer.coverage == "0 of 0 leaves answered"
    assert (answer.tree, answer.results, answer.partial, answer.warnings) == ((), (), False, ())
    assert said in answer.summary.text
    status = ramify.status(answer.job_id)
    assert (status.leaves_total, status.leaves_done, status.leaves_failed) == (0, 0, 0)


def test_given_a_batch_of_chatter_and_questions_when_submitted_then_every_job_ends(ramify: Ramify) -> None:
    batch = ramify.submit_many(["hello", "谢谢", "Which port does RabbitMQ use?", "ok"])
    states = {ramify.wait(job_id, 60).state for job_id in batch.job_ids}
    assert states == {"done"}
    assert ramify.batch_status(batch.batch_id).finished == 4


def test_given_chatter_with_a_strategy_when_asked_then_it_is_searched(ramify: Ramify) -> None:
    answer = answer_to(ramify, "hello", strategy="bm25_only")
    assert (answer.retrieval, [node.facet for node in answer.tree]) == (True, [Facet.ORIGINAL])
    assert answer.route is not None
    assert (answer.route.by, answer.route.strategy) == ("request", "bm25_only")


def test_given_several_hops_when_asked_then_leaves_run_the_rows_strategy(ramify: Ramify) -> None:
    answer = answer_to(ramify, MULTI_HOP)
    assert answer.route is not None
    assert (answer.route.row, answer.route.strategy) == ("multi_hop", "multihop")
    node_of = {node.id: node for node in answer.tree}
    planned = [leaf for leaf in answer.leaves if node_of[leaf.node_id].gap is None]
    assert all("hops" in {trace.stage for trace in leaf.stages} for leaf in planned)


def test_given_a_job_when_read_by_a_plain_client_then_its_route_is_in_the_hash_and_in_one_event(ramify: Ramify) -> None:
    answer = answer_to(ramify, MULTI_HOP)
    client: redis.Redis = ramify._jobs.client
    fields = client.hmget(f"ramify:{{{answer.job_id}}}:job", ["route", "aggregator"])
    route = json.loads(fields[0])
    assert (route["type"], route["hops"], route["row"]) == ("complex_reasoning", "multi_hop", "multi_hop")
    assert fields[1].decode() == route["aggregator"]
    events = [event for event in ramify.stream(answer.job_id, 5) if event.type == "routed"]
    assert [json.loads(event.data["route"]) for event in events] == [route]


def test_given_a_simple_question_and_an_llm_when_asked_then_one_leaf_and_no_call_for_subquestions(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    before = len(fake.requests("chat"))
    answer = answer_to(with_models, "Which port does the RabbitMQ management page listen on?", summary=False)
    assert answer.route is not None
    assert (answer.route.row, len(answer.leaves), answer.cost.llm_calls) == ("simple_rule", 1, 0)
    assert len(fake.requests("chat")) == before
