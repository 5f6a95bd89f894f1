"""From how a question reads to the way it is answered: the table's row, and what a request decides itself."""

import pytest

from orchestrator.planning.route import (
    as_requested,
    callers_route,
    decided_by,
    possible_callers,
    possible_list,
    requested_route,
    route_request,
    table_route,
)
from shared.language.routing import route_by_rules
from shared.models import JobRequest
from shared.models.route import Hops, Intent, PlannerName, QueryType, Routed
from shared.settings import load_settings


def read(kind: QueryType, hops: Hops | None = None, *, unsure: bool = False) -> Routed:
    return Routed(
        type=kind, hops=hops, intent=Intent.GENERAL, confidence=0.4 if unsure else 0.9,
        unsure=unsure,
    )  # fmt: skip


def asked(question: str = "what is it?", **fields):
    request = JobRequest.model_validate({"question": question, **fields})
    return requested_route(request, as_requested(route_by_rules(question), decided_by(request) or ""), load_settings())


@pytest.mark.parametrize(
    ("routed", "row", "planner", "strategy", "aggregator"),
    [
        (read(QueryType.NONE), "none", "none", "default", "simple"),
        (read(QueryType.SIMPLE_RULE), "simple_rule", "original", "default", "simple"),
        (read(QueryType.COMPLEX_REASONING, Hops.ASPECTS), "aspects", "decompose", "default", "reasoning"),
        (read(QueryType.COMPLEX_REASONING, Hops.MULTI_HOP), "multi_hop", "nested", "multihop", "reasoning"),
        (read(QueryType.ENUMERATION), "enumeration", "enumeration", "default", "enumeration"),
        (read(QueryType.NONE, unsure=True), "unsure", "decompose", "default", "simple"),
        (read(QueryType.ENUMERATION, unsure=True), "unsure", "decompose", "default", "simple"),
    ],
)
def test_given_a_type_when_routed_then_its_row_decides_and_unsure_has_one_of_its_own(
    routed, row, planner, strategy, aggregator
):
    way = table_route(routed, load_settings())
    assert (way.row, way.planner.value, way.strategy, way.aggregator) == (row, planner, strategy, aggregator)
    assert (way.type, way.confidence, way.by) == (routed.type, routed.confidence, "rules")


def test_given_a_changed_row_when_routed_then_it_is_followed_and_its_post_has_a_name_of_its_own():
    settings = load_settings(routing={"types": {"aspects": {"strategy": "hybrid", "post": ["mmr"]}}})
    way = table_route(read(QueryType.COMPLEX_REASONING, Hops.ASPECTS), settings)
    assert (way.planner, way.strategy) == (PlannerName.DECOMPOSE, "hybrid/aspects")
    assert [stage.stage for stage in settings.stages_of(way.strategy)][-2:] == ["rerank", "mmr"]


def test_given_a_fixed_mode_when_routed_then_every_question_takes_the_row_unsure():
    settings = load_settings(routing={"adaptive": False})
    assert {table_route(read(kind), settings).row for kind in (QueryType.NONE, QueryType.SIMPLE_RULE)} == {"unsure"}


def test_given_room_for_one_leaf_when_routed_then_nothing_is_decomposed():
    settings = load_settings(decomposition={"max_total_leaves": 1})
    assert table_route(read(QueryType.COMPLEX_REASONING, Hops.MULTI_HOP), settings).planner is PlannerName.ORIGINAL


@pytest.mark.parametrize(
    ("fields", "planner", "strategy"),
    [
        ({"strategy": "deep"}, "decompose", "deep"),
        ({"mode": "bm25_only"}, "decompose", "bm25_only"),
        ({"near_symbol": "a.b"}, "decompose", "two_pass"),
        ({"depth": 1}, "decompose", "two_pass"),
        ({"decompose": False}, "original", "default"),
        ({"strategy": "deep", "decompose": False}, "original", "deep"),
        ({"subqueries": ["one thing"]}, "request", "default"),
        ({"typed": [{"query": "what is it?"}]}, "request", "default"),
    ],
)
@pytest.mark.parametrize("question", ["hello", "List all incidents of 2025", "Which port is it?", "你好"])
def test_given_a_request_that_decides_when_routed_then_it_is_followed_whatever_the_question_reads_like(
    question, fields, planner, strategy
):
    way = asked(question, **fields)
    assert (way.planner.value, way.strategy, way.by) == (planner, strategy, "request")
    assert way.type is not QueryType.NONE


def test_given_an_own_plan_with_steps_when_routed_then_its_answer_is_told_step_by_step():
    assert asked(subqueries=["who is it?", "when was #1 born?"]).aggregator == "reasoning"
    assert asked(subqueries=["who is it?", "when was it?"]).aggregator == "simple"


def test_given_a_row_unsure_that_retrieves_nothing_when_a_strategy_is_named_then_something_is_searched():
    settings = load_settings(routing={"types": {"unsure": {"planner": "none"}}})
    request = JobRequest(question="hello", strategy="deep")
    way = requested_route(request, as_requested(route_by_rules("hello"), "strategy deep"), settings)
    assert way.planner is PlannerName.DECOMPOSE


def test_given_a_question_alone_when_asked_what_decides_then_nothing_of_the_request_does():
    assert decided_by(JobRequest(question="x", top_n=3, explain=True, deadline_s=5)) is None


def test_given_a_plan_for_a_question_with_several_aspects_when_asked_then_it_is_told_like_such_a_question():
    entries = [{"query": "What are the risks of moving?"}, {"query": "What does moving cost?"}]
    way = asked("What are the risks and the costs of moving, and should we move?", subqueries=entries)
    assert (way.row, way.planner, way.aggregator) == ("aspects", PlannerName.REQUEST, "reasoning")
    plain = asked("Which port does it use?", subqueries=entries)
    assert (plain.row, plain.aggregator) == ("unsure", "simple")


@pytest.mark.parametrize("question", ["Which functions call parse_config?", "What are the callers of parse_config?"])
def test_given_a_question_for_callers_when_the_corpus_defines_the_symbol_then_it_is_searched_and_not_listed(question):
    settings = load_settings()
    way, _ = route_request(JobRequest(question=question), settings, None, 1.0)
    assert possible_callers(way)
    known = callers_route(way, settings)
    assert (known.planner, known.aggregator, known.by) == (PlannerName.ORIGINAL, "simple", "corpus")
    assert not possible_callers(known)
    assert not possible_list(known)


@pytest.mark.parametrize("question", ["Who calls parse_config?", "Which files call parse_config?"])
def test_given_a_search_or_a_list_of_files_when_routed_then_the_corpus_is_not_asked_for_a_symbol(question):
    way, _ = route_request(JobRequest(question=question), load_settings(), None, 1.0)
    assert not possible_callers(way)
