"""The planner: which leaves each type of question gets, what that costs, and which strategy they carry."""

import time

import pytest

from orchestrator.planning.planner import NO_LLM, Planner
from shared.jobs import Job, State
from shared.models import Facet, JobRequest
from shared.models.route import PlannerName
from shared.settings import load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Reply

SIMPLE = "Which port does the metrics exporter listen on?"
ASPECTS = "Compare Redis Streams and RabbitMQ for our order pipeline."
HOPS = "When was the director of the film Sleep Has Her House born?"
UNSURE = "tungsten, if ever; or the other, as before"


def job(question: str, **fields) -> Job:
    now = time.time()
    request = JobRequest.model_validate({"question": question, **fields})
    return Job(
        id="0123456789ab",
        state=State.PLANNING,
        request=request,
        created_at=now,
        updated_at=now,
        deadline_s=60,
        left_s=60,
    )


def planned(question: str, planner: Planner | None = None, **fields):
    planner = planner or Planner(load_settings())
    one = job(question, **fields)
    route, spent = planner.route(one)
    grown, cost = planner.first(one, route)
    planner.close()
    return route, grown, spent + cost


def with_llm(server: FakeOpenAI, **settings) -> Planner:
    return Planner(load_settings(llm_model="m", llm_base_url=server.url, llm_attempts=1, **settings))


@pytest.mark.parametrize("question", ["hi there, thanks!", "你好，谢谢"])
def test_given_chatter_when_planned_then_there_is_no_leaf_and_no_warning(question):
    route, grown, cost = planned(question)
    assert (route.planner, grown.nodes, grown.warnings, bool(cost)) == (PlannerName.NONE, (), (), False)


def test_given_a_simple_question_when_planned_then_one_leaf_searches_it_and_no_llm_is_asked():
    with FakeOpenAI() as server:
        route, grown, cost = planned(SIMPLE, with_llm(server))
        assert server.requests() == []
    assert [(node.facet, node.query, node.strategy) for node in grown.nodes] == [(Facet.ORIGINAL, SIMPLE, None)]
    assert (route.row, cost.llm_calls, grown.warnings) == ("simple_rule", 0, ())


def test_given_aspects_when_planned_then_the_question_branches_and_an_absent_llm_is_told():
    route, grown, _ = planned(ASPECTS)
    assert (route.row, grown.warnings[:1]) == ("aspects", (NO_LLM,))
    assert len(grown.nodes) >= 3
    assert {node.strategy for node in grown.nodes} == {None}


@pytest.mark.parametrize("question", [HOPS, "《无名之辈》的导演出生于哪里？"])
def test_given_several_hops_when_planned_then_steps_wait_and_every_leaf_carries_the_strategy(question):
    route, grown, _ = planned(question)
    assert route.row == "multi_hop"
    assert {node.strategy for node in grown.nodes} == {"multihop"}
    assert grown.nodes[-1].depends_on == ("0.1",)


def test_given_steps_that_the_rules_see_when_planned_then_the_llm_is_not_paid_for_them():
    with FakeOpenAI() as server:
        _, grown, cost = planned(HOPS, with_llm(server))
    assert (grown.nodes[-1].depends_on, cost.llm_calls) == (("0.1",), 0)


def test_given_a_question_that_the_rules_cannot_read_when_planned_then_the_llm_is_asked_once_and_counted():
    said = "<route><type>simple_rule</type><intent>general</intent></route>"
    with FakeOpenAI() as server:
        server.script("chat", Reply(text=said))
        route, grown, cost = planned(UNSURE, with_llm(server))
        assert len(server.requests()) == 1
    assert (route.by, route.row, len(grown.nodes), cost.llm_calls) == ("llm", "simple_rule", 1, 1)


def test_given_a_reply_that_cannot_be_read_when_planned_then_a_warning_says_so_and_the_question_branches():
    with FakeOpenAI() as server:
        server.script("chat", Reply(text="no idea"))
        route, grown, cost = planned(UNSURE, with_llm(server))
    assert (route.row, route.unsure) == ("unsure", True)
    assert "The LLM did not say how to answer" in route.warnings[0]
    assert cost.llm_calls >= 2, "the reading, then the decomposition"
    assert grown.nodes[0].facet is Facet.ORIGINAL


def test_given_routing_without_the_llm_when_planned_then_it_only_decomposes():
    with FakeOpenAI() as server:
        route, _, _ = planned(UNSURE, with_llm(server, routing={"llm": False}))
        assert all("<decomposition>" in str(request.body) for request in server.requests())
    assert (route.by, route.row) == ("rules", "unsure")


def test_given_a_strategy_in_the_request_when_planned_then_the_nodes_carry_none_and_greetings_are_searched():
    route, grown, _ = planned(HOPS, strategy="hybrid")
    assert (route.strategy, {node.strategy for node in grown.nodes}) == ("hybrid", {None})
    assert len(planned("hello", strategy="hybrid")[1].nodes) == 1


def test_given_a_branch_with_a_strategy_when_refined_then_its_children_carry_it():
    planner = Planner(load_settings(routing={"types": {"aspects": {"strategy": "diverse"}}}))
    _, grown, _ = planned(ASPECTS, planner)  # without an LLM nothing is closed
    branch = grown.nodes[1].model_copy(update={"query": ASPECTS.replace("Redis", "Kafka"), "budget": 4})
    children, _ = planner.refine(job(ASPECTS), branch)
    assert len(children.nodes) > 1
    assert {node.strategy for node in children.nodes} == {"diverse"}
