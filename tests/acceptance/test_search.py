"""`find` and `search` through the whole running stack, with and without an LLM."""

from __future__ import annotations

import pytest

from orchestrator.client import Ramify
from shared.errors import InputError
from shared.models.request import ContextType
from tests.fakes.openai_server import FakeOpenAI

CHAT = {
    "messages": [
        {"role": "user", "content": "Redis 持久化有哪些方式？"},
        {"role": "assistant", "content": "两种：\n1、RDB 快照\n2、AOF 日志"},
    ]
}


def test_given_a_query_when_found_then_hits_stand_by_kind_with_links_and_addresses(ramify: Ramify) -> None:
    found = ramify.find("consumer groups of a Redis stream", plan=True)
    matches = [*found.memories, *found.resources, *found.skills, *found.others]
    assert {match.chunk_id for match in matches} == {hit.chunk_id for hit in found.hits}
    assert all(match.uri.startswith("ramify://default/notes/") for match in matches)
    assert any(related.how == "links to" for match in matches for related in match.related)
    assert all(len(match.related) <= 5 and match.abstract for match in matches)
    assert found.query_results is not None
    assert [hit.uri for hit in found.query_results[0].hits[:1]] == [
        match.uri for match in matches if match.chunk_id == found.hits[0].chunk_id
    ]


def test_given_a_strategy_when_found_then_all_of_its_stages_have_run_as_for_a_leaf(ramify: Ramify) -> None:
    question = "consumer groups of a Redis stream"
    found = ramify.find(question, explain=True, top_n=5)
    assert all(any(effect.stage == "rerank" for effect in hit.explain) for hit in found.hits)
    job_id = ramify.submit(question, decompose=False, top_n=5)
    ramify.wait(job_id)
    leaf = ramify.result(job_id).leaves[0]
    assert [hit.chunk_id for hit in found.hits] == [hit.chunk_id for hit in leaf.hits]
    assert [hit.score for hit in found.hits] == pytest.approx([hit.score for hit in leaf.hits])


def test_given_a_target_when_searched_then_nothing_else_is_found(ramify: Ramify) -> None:
    found = ramify.search("Redis", target_uri="ramify://default/notes/zh/caching/")
    assert found.total
    assert all(hit.path.startswith("notes/zh/caching/") for hit in found.hits)
    one = ramify.find("Redis", target_uri=next(iter((*found.resources, *found.skills, *found.memories))).uri)
    assert len({hit.path for hit in one.hits}) == 1
    with pytest.raises(InputError, match="target_uri"):
        ramify.find("Redis", target_uri="http://notes/")


def test_given_a_follow_up_when_searched_then_the_conversation_finds_its_page(ramify: Ramify) -> None:
    alone = ramify.search("第二个呢？")
    found = ramify.search("第二个呢？", CHAT, plan=True)
    assert "redis-persistence" in found.hits[0].path
    assert not alone.hits or "redis-persistence" not in alone.hits[0].path
    assert found.query_plan is not None
    assert found.query_plan[0].query == "第二个呢？"
    assert found.planned_by == "rules"
    assert len({hit.chunk_id for hit in found.hits}) == len(found.hits)


def test_given_a_task_when_searched_then_each_query_stays_in_its_kind(ramify: Ramify) -> None:
    found = ramify.search("How do I restore the orders database?", plan=True)
    assert found.query_plan is not None
    assert [query.context_type for query in found.query_plan] == [None, ContextType.SKILL, ContextType.RESOURCE]
    assert "restore-orders-database" in found.skills[0].path
    kinds = {hit.chunk_id: hit.kind for hit in found.hits}
    assert set(kinds.values()) <= {"memory", "resource", "skill"}
    assert ramify.status(str(found.job_id)).leaves_total == 3


def test_given_talk_when_searched_then_there_is_no_job(ramify: Ramify) -> None:
    before = len(ramify.jobs(1000))
    found = ramify.search("谢谢！", CHAT)
    assert (found.retrieval, found.hits, found.job_id) == (False, (), None)
    assert len(ramify.jobs(1000)) == before


def test_given_a_kept_conversation_when_searched_then_it_is_read_and_an_unknown_one_is_a_warning(
    ramify: Ramify,
) -> None:
    kept = ramify.session("chat", "team")
    for message in CHAT["messages"]:
        kept.append(message["role"], message["content"])
    assert "AOF" in ramify.search("第二个呢？", kept).standalone
    unknown = ramify.search("what is BM25?", ramify.session("nobody"))
    assert "The session nobody holds nothing" in unknown.warnings[0]
    assert unknown.hits


def test_given_an_llm_when_searched_then_its_queries_are_the_leaves_and_its_faults_are_warnings(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    plan = (
        "<plan><typed_query><context_type>skill</context_type><query>Drain the dead-letter queue</query>"
        "<intent>steps</intent><priority>1</priority></typed_query></plan>"
    )
    fake.script("chat", plan)
    found = with_models.search("how do we get rid of the dead letters?", plan=True)
    assert found.planned_by == "llm", found.warnings
    assert found.query_results is not None
    assert [(result.query, result.context_type) for result in found.query_results][1] == (
        "Drain the dead-letter queue",
        ContextType.SKILL,
    )
    assert found.cost.llm_calls == 1
    fake.script("chat", "no XML", "<plan></plan>")
    ruled = with_models.search("how do we get rid of dead letters again?")
    assert ruled.planned_by == "rules"
    assert any("even after a second ask" in warning for warning in ruled.warnings)
    assert ruled.hits
