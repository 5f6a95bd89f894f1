"""A leaf that has found something is recorded with it, whatever becomes of its last task. On a real Redis."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import redis

from shared.contract import TaskMessage, TaskName
from shared.jobs import JobReader, JobStore, State, hit_blobs, new_id
from shared.jobs.budget import Ledger
from shared.jobs.keys import JobKeys
from shared.jobs.lines import NewLine, Page
from shared.models import Facet, Hit, JobRequest, LeafStatus, MergedPool, Node, SearchResult
from shared.models.degraded import Degradation
from shared.providers.fallbacks import noting
from shared.providers.gates import gate
from shared.settings import Settings
from shared.tasks.task_run import TaskRun
from shared.tasks.work_tracker import WorkTracker

NODES = [Node(id=f"0.{n}", parent_id="0", level=1, facet=Facet.CORE, query=f"q{n}") for n in (1, 2, 3)]
NODES[1] = NODES[1].model_copy(update={"variants": ("q2 of a", "q2 of b")})


@pytest.fixture
def outcome(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RAMIFY_REDIS__URL", redis_url)
    monkeypatch.setattr(gate, "_process_store", gate._process_store)  # the import tells the gates of the Redis
    from workers import leaf_outcome

    return leaf_outcome


@pytest.fixture
def jobs(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


def hit(name: str, score: float, variant: float | None = None) -> Hit:
    parts = {} if variant is None else {"variant": variant}
    return Hit(chunk_id=name, doc_id=name, path=name, title=name, text=name, score=score, parts=parts)


def searching(jobs: JobStore, *found: tuple[str, SearchResult], batch_id: str | None = None) -> str:
    """A job whose named leaves have been searched, of a batch if that is named."""
    job_id, request = new_id(), JobRequest(question="why?")
    if batch_id:
        jobs.batches.enter(
            batch_id, Page(0, "", 1, "d", [NewLine(1, jobs.new_job(job_id, request, batch_id=batch_id))])
        )
    else:
        jobs.enqueue([(job_id, request)])
    jobs.start_planning(job_id, "t")
    jobs.start_searching(job_id, NODES)
    for node_id, result in found:
        assert jobs.put_candidates(job_id, node_id, result)
    return job_id


def run_of(jobs: JobStore, job_id: str, task: TaskName, node_id: str | None = None) -> TaskRun:
    job = jobs.job(job_id)
    assert job is not None
    named: Any = SimpleNamespace(name=task.value, request=SimpleNamespace(id="t"))
    return TaskRun(named, jobs, job, TaskMessage(job_id=job_id, node_id=node_id))


FOUND = SearchResult(hits=(hit("a", 0.9), hit("b", 0.5)), mode="default", candidates=7, warnings=("before",))


@pytest.mark.parametrize(
    ("task", "reason"),
    [(TaskName.RERANK_LEAF, Degradation.RERANK_UNAVAILABLE), (TaskName.RERANK_COLUMNS, Degradation.LLM_UNAVAILABLE)],
)
def test_given_candidates_when_the_leafs_last_task_fails_then_it_is_done_with_them_and_says_without_what(
    outcome: Any, jobs: JobStore, task: TaskName, reason: Degradation
) -> None:
    run = run_of(jobs, searching(jobs, ("0.1", FOUND)), task, "0.1")
    with noting(run.fallbacks):
        outcome.leaf_failed(run, "it killed its worker 3 times")
    leaf = jobs.results(run.job.id)["0.1"]
    assert (leaf.status, [one.chunk_id for one in leaf.hits], leaf.candidates) == (LeafStatus.DONE, ["a", "b"], 7)
    assert [one.snippet for one in leaf.hits] == ["a", "b"], "the rerank pool would have made them"
    assert leaf.warnings == ("before", "Leaf 0.1 stands as its search left it: it killed its worker 3 times")
    status = JobReader(jobs.client).status(run.job.id)
    assert status.degraded_at == {"0.1": (reason,)}
    assert status.warnings == leaf.warnings[1:]


def test_given_candidates_that_cannot_be_read_when_its_task_fails_then_the_leaf_has_failed(
    outcome: Any, jobs: JobStore
) -> None:
    run = run_of(jobs, searching(jobs, ("0.1", FOUND)), TaskName.RERANK_LEAF, "0.1")
    jobs.client.hset(JobKeys(run.job.id).candidates, "0.1", b"x")
    with noting(run.fallbacks):
        outcome.leaf_failed(run, "no")
    assert jobs.results(run.job.id)["0.1"].status is LeafStatus.FAILED


def test_given_no_candidates_when_its_task_fails_then_the_leaf_has_failed(outcome: Any, jobs: JobStore) -> None:
    run = run_of(jobs, searching(jobs), TaskName.SEARCH_LEAF, "0.1")
    with noting(run.fallbacks):
        outcome.leaf_failed(run, "no store")
    assert (jobs.results(run.job.id)["0.1"].status, jobs.results(run.job.id)["0.1"].error) == (
        LeafStatus.FAILED,
        "no store",
    )
    assert JobReader(jobs.client).status(run.job.id).degraded == ()


def test_given_the_deadline_when_merged_by_force_then_searched_leaves_stand_in_fused_order_and_others_are_missing(
    outcome: Any, jobs: JobStore
) -> None:
    wordings = (hit("a", 0.4, 0.0), hit("b", 0.3, 0.0), hit("b", 0.8, 1.0))
    job_id = searching(jobs, ("0.1", FOUND), ("0.2", FOUND.model_copy(update={"hits": wordings})))
    run = run_of(jobs, job_id, TaskName.MERGE_TREE)
    with noting(run.fallbacks):
        outcome.record_searched(run)
    results = jobs.results(job_id)
    assert {node_id: [one.chunk_id for one in leaf.hits] for node_id, leaf in results.items()} == {
        "0.1": ["a", "b"],
        "0.2": ["b", "a"],
    }
    assert jobs.leaf_states(job_id) == {"0.1": "done", "0.2": "done", "0.3": "pending"}
    assert JobReader(jobs.client).status(job_id).degraded_at == dict.fromkeys(
        ("0.1", "0.2"), (Degradation.OUT_OF_TIME,)
    )


def merge_tasks(jobs: JobStore, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The merge pool's tasks, on this Redis."""
    from workers.merge import tasks

    for name, value in {
        "settings": settings,
        "jobs": jobs,
        "_tracker": WorkTracker(jobs),
        "_ledger": Ledger(jobs.client, settings),
    }.items():
        monkeypatch.setattr(tasks.registry, name, value)
    return tasks


def test_given_nobody_who_reranks_when_merged_by_force_at_the_deadline_then_the_answer_is_written_next(
    outcome: Any, jobs: JobStore, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = merge_tasks(jobs, settings, monkeypatch)
    job_id = searching(jobs, ("0.1", FOUND), ("0.2", FOUND))
    jobs.client.hset(JobKeys(job_id).job, "deadline_at", "1")
    tasks.merge_tree.apply(args=(TaskMessage(job_id=job_id, force=True).wire(),), throw=True)
    job, pool = jobs.job(job_id), jobs.pool(job_id)
    assert job is not None
    assert pool is not None
    assert (job.state, [one.chunk_id for one in pool.hits]) == (State.SUMMARISING, ["a", "b"])
    status = JobReader(jobs.client).status(job_id)
    assert status.degraded == (Degradation.OUT_OF_TIME,)
    assert "The merged results were not reranked: the job's time was up." in status.warnings


def test_given_candidates_that_are_lost_when_a_leaf_is_reranked_then_it_is_searched_once_more(
    outcome: Any, jobs: JobStore, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge_tasks(jobs, settings, monkeypatch)
    from workers.rerank.tasks import rerank_leaf

    job_id = searching(jobs)
    for ends, reason in (
        ("pending", None),
        ("failed", "what is stored of the job cannot be read: what its search found"),
    ):
        jobs.put_candidates(job_id, "0.1", FOUND)
        jobs.client.delete(JobKeys(job_id).chunks)
        hit_blobs._read.clear()
        rerank_leaf.apply(args=(TaskMessage(job_id=job_id, node_id="0.1").wire(),), throw=True)
        assert jobs.leaf_states(job_id)["0.1"] == ends
        assert jobs.candidates(job_id, "0.1") is None
        if reason is None:
            assert jobs.work.items(job_id)["0.1"].sent_raw == "", "so that the reaper sends it at once"
            assert run_of(jobs, job_id, TaskName.RERANK_LEAF, "0.1").candidates() is None, (
                "Redis has lost its search too"
            )
        else:
            assert (jobs.results(job_id)["0.1"].error or "").startswith(reason)


@pytest.mark.parametrize("fault", [None, "no store"])
def test_given_leaves_without_an_answer_at_the_deadline_when_summarised_then_only_missing_time_is_the_reason(
    outcome: Any, jobs: JobStore, settings: Settings, monkeypatch: pytest.MonkeyPatch, fault: str | None
) -> None:
    tasks, batch_id = merge_tasks(jobs, settings, monkeypatch), new_id()
    from workers.search.tasks import search_leaf

    jobs.batches.open(batch_id)
    job_id = searching(jobs, batch_id=batch_id)
    jobs.client.hset(JobKeys(job_id).job, "deadline_at", "1")
    search_leaf.apply(args=(TaskMessage(job_id=job_id, node_id="0.1").wire(),), throw=True)
    assert jobs.results(job_id)["0.1"].out_of_time
    if fault:
        outcome.leaf_failed(run_of(jobs, job_id, TaskName.SEARCH_LEAF, "0.2"), fault)
    jobs.start_merging(job_id, "t", force=True)
    jobs.start_summarising(job_id, MergedPool())
    tasks.merge_summarise.apply(args=(TaskMessage(job_id=job_id).wire(),), throw=True)
    status, batch = JobReader(jobs.client).status(job_id), jobs.batches.status(batch_id)
    reasons = {} if fault else {"out_of_time": 1}
    assert (status.state, status.degraded, batch.reasons, batch.failed) == ("failed", tuple(reasons), reasons, 1)
    said = "until the deadline, 120 s after the job's turn came: `ramify retry ID --deadline SECONDS` gives more"
    assert (said in (status.error or "")) is (fault is None)
