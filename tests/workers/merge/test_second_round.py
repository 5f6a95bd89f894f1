"""The task that merges begins a second round once, however often it is delivered. On a real Redis, without workers."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from shared.contract import PRIORITY_STEPS, TaskMessage
from shared.errors import TransientError
from shared.jobs import JobReader, JobStore, State, new_id
from shared.models import Facet, Hit, JobRequest, LeafResult, LeafStatus, Node
from shared.providers.gates import gate
from shared.settings import Settings
from tests.fakes.scripted_llm import ScriptedLLM
from tests.workers.test_leaf_outcome import merge_tasks

QUESTION = "Where was the director of The Quiet Harbour born?"
PASSAGE = "The Quiet Harbour is a film. Its director Ann Marsh was praised for it."


@pytest.fixture
def merging(redis_url: str, client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RAMIFY_REDIS__URL", redis_url)
    monkeypatch.setattr(gate, "_process_store", gate._process_store)  # the import tells the gates of the Redis
    return merge_tasks(JobStore(client, settings), settings, monkeypatch)


def searched(jobs: JobStore, **options: object) -> str:
    """A job whose only leaf has found the first page of two."""
    job_id = new_id()
    jobs.enqueue([(job_id, JobRequest.model_validate({"question": QUESTION, **options}))])
    jobs.admit()
    jobs.start_planning(job_id, "t")
    jobs.start_searching(job_id, [Node(id="0.0", parent_id="0", level=1, facet=Facet.ORIGINAL, query=QUESTION)])
    jobs.record_leaf(job_id, leaf("0.0"))
    return job_id


def leaf(node_id: str) -> LeafResult:
    hit = Hit(chunk_id=node_id, doc_id="d", path="p", title="The Quiet Harbour", text=PASSAGE, score=0.6)
    return LeafResult(node_id=node_id, status=LeafStatus.DONE, hits=(hit,))


def run(merging: Any, job_id: str, task_id: str = "first", *, force: bool = False) -> list[Any]:
    """One delivery of the body's first task; what is left of its chain."""
    task, chain = merging.merge_tree, ["summarise", {"task": "rerank.root"}]
    task.push_request(id=task_id, chain=chain)
    try:
        task.run(TaskMessage(job_id=job_id, force=force).wire())
    finally:
        task.pop_request()
    return chain


def sent(client: redis.Redis) -> int:
    """Messages for the search pool."""
    return sum(client.llen(f"search\x06\x16{step}" if step else "search") for step in PRIORITY_STEPS)


def state(jobs: JobStore, job_id: str) -> State:
    job = jobs.job(job_id)
    assert job is not None
    return job.state


def test_a_body_that_comes_three_times_begins_one_round_and_the_next_one_merges(
    merging: Any, client: redis.Redis, settings: Settings
) -> None:
    jobs = JobStore(client, settings)
    job_id = searched(jobs)

    assert run(merging, job_id) == [], "nothing of its chain runs"
    run(merging, job_id)
    run(merging, job_id, "another")

    states = jobs.leaf_states(job_id)
    added = [name for name, value in states.items() if value == "pending"]
    assert 1 <= len(added) <= 4
    assert sent(client) == len(added), "each leaf is sent once"
    assert state(jobs, job_id) is State.SEARCHING
    for name in added:
        jobs.record_leaf(job_id, leaf(name))
    assert run(merging, job_id) != []
    assert sent(client) == len(added)
    assert jobs.leaf_states(job_id).keys() == states.keys()
    assert state(jobs, job_id) is State.SUMMARISING


@pytest.mark.parametrize("why", ["force", "no time", "own plan"])
def test_no_round_begins_where_it_may_not(merging: Any, client: redis.Redis, settings: Settings, why: str) -> None:
    jobs = JobStore(client, settings)
    options: dict[str, object] = {"deadline_s": 3} if why == "no time" else {"decompose": why != "own plan"}
    job_id = searched(jobs, **options)
    run(merging, job_id, force=why == "force")
    assert sent(client) == 0
    assert state(jobs, job_id) is not State.SEARCHING


@pytest.mark.parametrize(
    ("reply", "query", "warned"),
    [
        ("<missing><query>Ann Marsh place of birth</query></missing>", "Ann Marsh place of birth", False),
        (TransientError("it is down"), "Ann Marsh born", True),
    ],
)
def test_what_the_llm_says_is_missing_goes_first_and_its_failure_leaves_the_rules(  # noqa: PLR0913, PLR0917
    merging: Any,
    client: redis.Redis,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    reply: Any,
    query: str,
    warned: bool,
) -> None:
    jobs, llm = JobStore(client, settings), ScriptedLLM(reply, tokens_in=7, tokens_out=2)
    asking = settings.model_copy(update={"gaps": settings.gaps.model_copy(update={"ask": True})})
    monkeypatch.setattr(merging.registry.jobs, "settings", asking)
    monkeypatch.setattr(merging, "llm_of", lambda *_: llm)
    job_id = searched(jobs)

    run(merging, job_id)
    run(merging, job_id)

    assert len(llm.prompts) == 1, "once a job"
    assert QUESTION in llm.prompts[0]
    assert jobs.nodes(job_id)["0.1"].query == query
    status = JobReader(client).status(job_id)
    assert status.cost.llm_tokens_in == (0 if warned else 7)
    assert any("was not asked of the LLM" in warning for warning in status.warnings) is warned


def test_a_tree_without_gaps_costs_no_call_more(
    merging: Any, client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = JobStore(client, settings)

    def calls() -> int:
        job_id = searched(jobs)
        before = client.info("commandstats")
        run(merging, job_id)
        after = client.info("commandstats")
        return sum(one["calls"] - before.get(name, {"calls": 0})["calls"] for name, one in after.items())

    calls()  # scripts are loaded
    monkeypatch.setattr(merging, "round_of", lambda *_: ())
    looked = calls()
    monkeypatch.setattr(merging, "_search_again", lambda *_: False)
    assert looked == calls()
