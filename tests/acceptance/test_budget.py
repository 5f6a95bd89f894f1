"""Budgets, own plans and estimates on a whole stack with an LLM, embedding and rerank server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.client import Ramify
from orchestrator.intake import as_request
from orchestrator.planning.plan_file import read_plan, written
from orchestrator.planning.preview import preview
from shared.models import Answer, Cost, NodeKind
from tests.fakes.answers import decomposition
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Reply

ROUTES = Path(__file__).parents[1] / "data" / "routes.jsonl"
QUESTION = "What are the causes, the steps and the risks of moving a message queue to streams, and what did it cost?"


def answer(ramify: Ramify, question: str | dict[str, object], **options: object) -> Answer:
    job_id = ramify.submit(question, **options)
    assert ramify.wait(job_id, 60).state == "done"
    return ramify.result(job_id)


def said(found: Answer) -> str:
    return "\n".join(found.warnings)


def refining(body: dict[str, Any]) -> str | Reply:
    """The fake's own answers, but a question about steps branches once more."""
    if "<user_query>\nWhich steps does this take" not in body["messages"][-1]["content"]:
        return Reply()
    return decomposition([("core", "Which step comes first of all?", False), ("note", "Which step may fail?", False)])


def test_given_no_calls_at_all_when_asked_then_rules_and_extracts_answer_and_say_so(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    before = len(fake.requests())
    found = answer(with_models, QUESTION, summary=True, strategy="deep", max_calls=0)
    assert len(fake.requests()) == before
    assert found.cost.llm_calls == 0
    assert found.budget is not None
    assert (found.budget.calls, found.budget.max_calls) == (0, 0)
    assert "The LLM gave no decomposition (budget max_calls = 0 allows none)." in said(found)
    assert "The summary by LLM cannot be used, so it is extractive: budget max_calls = 0 allows none." in said(found)
    assert "The question was not rewritten: budget max_calls = 0 allows none" in said(found)
    assert found.summary.kind == "extractive"


def test_given_a_leaf_without_rewrites_for_want_of_budget_when_asked_with_one_then_it_is_made_anew(
    with_models: Ramify,
) -> None:
    question = "Which queue keeps the order of messages when a consumer is slow?"
    poor = answer(with_models, question, strategy="deep", decompose=False, max_calls=0)
    rich = answer(with_models, question, strategy="deep", decompose=False)
    assert "was not rewritten" in said(poor)
    assert "budget" not in said(rich)
    assert rich.cost.llm_calls >= 1


def test_given_no_calls_at_all_when_searched_in_a_conversation_then_rules_read_it_and_say_so(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    before = len(fake.requests())
    found = with_models.search("And what are the risks of quorum queues?", max_calls=0)
    assert len(fake.requests()) == before
    assert "The queries were made by rules, not by the LLM: budget max_calls = 0 allows none." in found.warnings


def test_given_one_call_when_asked_then_it_plans_and_the_summary_is_extractive(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    before = len(fake.requests())
    found = answer(with_models, f"{QUESTION} (once)", summary=True, max_calls=1)
    assert len(fake.requests()) - before == 1 == found.cost.llm_calls
    assert "extractive: budget max_calls = 1 is used up." in said(found)
    status = with_models.status(found.job_id)
    assert status.budget is not None
    assert (status.budget.calls, status.budget.max_calls) == (1, 1)


def test_given_few_tokens_when_asked_then_no_call_that_may_take_more_is_made(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    before = len(fake.requests("chat")) + len(fake.requests("embeddings"))
    found = answer(with_models, f"{QUESTION} (tokens)", summary=True, max_tokens=5)
    assert len(fake.requests("chat")) + len(fake.requests("embeddings")) == before
    assert "The question could not be embedded, keyword search only: budget max_tokens = 5 has 5 left" in said(found)
    assert found.results


def test_given_a_batch_budget_when_its_jobs_run_then_the_later_ones_do_without_and_say_so(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    before = len(fake.requests())
    asked = [f"What are the reasons and the risks of queue number {n}, and how is it moved?" for n in range(6)]
    batch = with_models.submit_many(asked, batch_budget={"max_calls": 3}, summary=True)
    found = [with_models.wait(job_id, 90) for job_id in batch.job_ids]
    assert {status.state for status in found} == {"done"}, [status.error for status in found]
    assert len(fake.requests()) - before == 3
    refused = [status for status in found if "the batch's budget max_calls = 3 is used up" in " ".join(status.warnings)]
    assert len(refused) >= 3
    budget = with_models.batch_status(batch.batch_id).budget
    assert budget is not None
    assert (budget.calls, budget.max_calls) == (3, 3)


def test_given_a_plan_from_a_preview_when_written_read_and_run_then_the_tree_is_the_same(
    with_models: Ramify, fake: FakeOpenAI, tmp_path: Path
) -> None:
    fake.handle("chat", refining)
    shown = preview(as_request(QUESTION), with_models.settings)
    fake.handle("chat", lambda _: Reply())
    assert any(node.kind is NodeKind.BRANCH for node in shown.tree)
    path = tmp_path / "plan.toml"
    path.write_text(written(shown.plan, as_toml=True), encoding="utf-8")
    again = preview(as_request({"plan": read_plan(path)}), with_models.settings)
    found = answer(with_models, {"plan": read_plan(path)})
    assert again.cost == Cost()
    plain = [
        [(n.id, n.parent_id, n.facet, n.query, n.kind) for n in tree] for tree in (shown.tree, again.tree, found.tree)
    ]
    assert plain[0] == plain[1] == plain[2]
    leaves = [node for node in shown.tree if node.kind is NodeKind.LEAF]
    assert found.coverage == f"{len(leaves)} of {len(leaves)} leaves answered"


def test_given_fifty_questions_when_run_then_what_they_cost_lies_in_the_estimate(with_models: Ramify) -> None:
    rows = [json.loads(line) for line in ROUTES.read_text(encoding="utf-8").splitlines()]
    questions = [row["text"] for row in rows if row["type"] != "enumeration"][::3][:50]
    assert len(questions) == 50
    ways = [{"summary": n % 2 == 0, **({"strategy": "deep"} if n % 3 == 0 else {})} for n in range(50)]
    estimates = [
        preview(as_request(question, way), with_models.settings).estimate
        for question, way in zip(questions, ways, strict=True)
    ]
    jobs = [with_models.submit(question, **way) for question, way in zip(questions, ways, strict=True)]
    planned = 0
    for question, job_id, estimated in zip(questions, jobs, estimates, strict=True):
        with_models.wait(job_id, 100)
        cost = with_models.result(job_id).cost
        kinds = {kind: [row for row in estimated.rows if row.what.startswith(kind)] for kind in ("embedding", "rerank")}
        low, high = estimated.llm_calls
        assert low <= cost.llm_calls <= high, question
        assert cost.embed_calls <= sum(row.calls[1] for row in kinds["embedding"]), question
        assert cost.rerank_calls <= sum(row.calls[1] for row in kinds["rerank"]), question
        low, high = estimated.tokens
        assert low <= cost.llm_tokens_in + cost.llm_tokens_out + cost.embed_tokens <= high, question
        planned += cost.llm_calls
    assert planned > 25, "the estimate is held against something"
