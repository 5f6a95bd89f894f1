"""Which live jobs are tried with a second strategy, how, and what is kept of both answers."""

import time

import pytest

from orchestrator.shadow.trial import comparison, digest, live_strategy, tried, unfit
from shared.errors import SettingsError
from shared.job_store import Job, State
from shared.job_store.ab import sampled
from shared.job_store.keys import is_shadow, new_id, shadow_id
from shared.models import Answer, Cost, JobRequest, Lane, MergedHit
from shared.models.route import Hops, Intent, PlannerName, QueryType, Route
from shared.settings import load_settings
from tests.fakes.ramify_client import hit

LONG_AGO_S = 1000


def job(**fields) -> Job:
    request = JobRequest(question="What keeps order?", **fields)
    now = time.time()  # not when the tests were collected: that may be long ago
    return Job(
        id=new_id(), state=State.DONE, request=request, created_at=now, updated_at=now, deadline_at=now + 60, left_s=60
    )


def route(planner=PlannerName.ORIGINAL, **fields) -> Route:
    values = {
        "type": QueryType.SIMPLE_RULE, "intent": Intent.ENTITY, "confidence": 0.9, "row": "x",
        "planner": planner, "strategy": "default", "aggregator": "simple",
    }  # fmt: skip
    return Route(**{**values, **fields})


def answer(*paths, **fields) -> Answer:
    hits = tuple(MergedHit(**hit(n, path=path).model_dump()) for n, path in enumerate(paths, 1))
    values = {"route": route(), "results": hits, "timings_ms": {"searching": 30.0, "merging": 12.0, "queued": 500.0}}
    return Answer(job_id="job00001", question="What keeps order?", state="done", coverage="", **{**values, **fields})


@pytest.mark.parametrize(
    ("given", "found", "reason"),
    [
        ({}, answer("a"), None),
        ({"strategy": "default"}, answer("a"), None),
        ({"strategy": "hybrid"}, answer("a"), "same strategy"),
        ({"mode": "hybrid"}, answer("a"), "same strategy"),
        ({"near_symbol": "pkg.f"}, answer("a"), "about one symbol"),
        ({"depth": 1}, answer("a"), "about one symbol"),
        ({}, answer(route=route(PlannerName.NONE)), "nothing retrieved"),
        ({}, answer("a", route=route(PlannerName.ENUMERATION)), "a complete list"),
        ({}, answer("a", partial=True), "partial"),
    ],
)
def test_given_a_live_job_when_looked_at_then_only_what_can_be_compared_is_tried(given, found, reason):
    assert unfit(job(**given), found, "hybrid") == reason


def test_given_a_job_that_waited_too_long_when_looked_at_then_it_is_not_tried():
    old = job().model_copy(update={"updated_at": time.time() - LONG_AGO_S})
    assert unfit(old, answer("a"), "hybrid") == "waited too long"


def test_given_a_request_when_tried_then_only_the_strategy_differs_and_it_stands_behind_everybody():
    settings = load_settings(shadow={"strategy": "hybrid", "share": 1, "deadline_s": 7})
    asked = job(
        filters={"tags": ["redis"]}, tenant="t", mode="deep", summary=True, idempotency_key="k", explain=True, top_n=7
    ).request
    second = tried(asked, settings)
    assert (second.strategy, second.mode, second.lane, second.deadline_s) == ("hybrid", None, Lane.BATCH, 7)
    assert (second.summary, second.idempotency_key, second.explain) == (False, None, False)
    assert (second.question, second.filters, second.tenant, second.top_n) == (
        asked.question, asked.filters, "t", 7,
    )  # fmt: skip
    adaptive = load_settings(shadow={"strategy": "adaptive", "share": 1})
    assert tried(job(strategy="deep").request, adaptive).strategy is None


def test_given_both_answers_when_compared_then_documents_times_and_costs_stand_side_by_side():
    settings = load_settings(shadow={"strategy": "hybrid", "share": 1})
    live = answer("n/1", "n/1", "n/2", cost=Cost(llm_calls=2))
    shadow = answer("n/2", "n/3", route=None, verdict="nothing relevant", timings_ms={"searching": 5.0})
    found = comparison(job(), live, shadow, settings)
    assert (found.live.strategy, found.shadow.strategy) == ("adaptive", "hybrid")
    assert (found.live.documents, found.shadow.documents) == (("n/1", "n/2"), ("n/2", "n/3"))
    assert (found.overlap, found.live.ms, found.shadow.ms) == (0.5, 42.0, 5.0)
    assert (found.live.cost.llm_calls, found.live.nothing, found.shadow.nothing) == (2, False, True)
    assert found.type == "simple_rule"
    assert "order" not in found.model_dump_json(), "the question itself is not kept a second time"


def test_given_how_the_question_was_read_when_compared_then_its_type_is_that_reading():
    settings = load_settings(shadow={"strategy": "hybrid", "share": 1})
    unsure = answer("a", route=route(unsure=True))
    several = answer("a", route=route(type=QueryType.COMPLEX_REASONING, hops=Hops.MULTI_HOP))
    unread = answer("a", route=None).model_copy(update={"question": "列出所有关于缓存的笔记"})
    types = [comparison(job(), live, answer("a"), settings).type for live in (unsure, several, unread)]
    assert types == ["unsure", "complex_reasoning", "enumeration"]


def test_given_more_than_ten_documents_when_compared_then_ten_are_kept_and_two_empty_answers_agree_on_nothing():
    settings = load_settings(shadow={"strategy": "hybrid", "share": 1})
    many = answer(*(f"n/{n}" for n in range(15)))
    assert len(comparison(job(), many, many, settings).live.documents) == 10
    empty = comparison(job(), answer(), answer(), settings)
    assert (empty.overlap, empty.rbo) == (None, None)


def test_given_a_question_when_digested_then_case_and_blanks_do_not_matter_and_words_do():
    assert digest("What  is\nREDIS?") == digest("what is redis?")
    assert digest("what is redis?") != digest("what is kafka?")


def test_given_what_the_caller_let_decide_when_named_then_it_is_strategy_mode_or_the_table():
    given = ({"strategy": "deep"}, {"mode": "deep"}, {})
    assert [live_strategy(JobRequest(question="q", **one)) for one in given] == ["deep", "deep", "adaptive"]


def test_given_a_share_when_ids_are_sampled_then_it_is_that_share_and_always_the_same_ids():
    ids = [new_id() for _ in range(4000)]
    taken = {name for name in ids if sampled(name, 0.25)}
    assert len(taken) == pytest.approx(1000, abs=120)
    assert taken == {name for name in ids if sampled(name, 0.25)}
    assert taken < {name for name in ids if sampled(name, 0.5)}, "a larger share has the smaller one in it"
    assert all(sampled(name, 1.0) for name in ids)
    assert not any(sampled(name, 0.0) for name in ids)


def test_given_an_id_when_looked_at_then_it_says_whether_anybody_asked_for_it():
    assert is_shadow(shadow_id())
    assert not is_shadow(new_id())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strategy": "hybird", "share": 0.5}, "shadow.strategy: 'hybird' .*did you mean 'hybrid'"),
        ({"share": 0.5}, "shadow.*share needs strategy"),
        ({"strategy": "hybrid", "share": 1.5}, "shadow.share: 1.5"),
        ({"strategy": "hybrid", "shares": 1}, "shares"),
    ],
)
def test_given_a_mistake_in_the_settings_when_read_then_one_sentence_names_it(given, said):
    with pytest.raises(SettingsError, match=said):
        load_settings(shadow=given)


def test_given_a_strategy_without_a_share_when_read_then_nothing_is_tried():
    assert not load_settings(shadow={"strategy": "hybrid"}).shadow.on
    assert load_settings(shadow={"strategy": "adaptive", "share": 0.1}).shadow.on
