"""Answers before the end and without one, on a real Redis: what is there, what is missing by name, nothing changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import redis

from shared.errors import RamifyError
from shared.jobs import Job, JobStore, State
from shared.jobs.keys import JobKeys
from shared.models import Answer, Hit, LeafResult, LeafStatus, MergedPool
from shared.settings import Settings
from shared.tasks.task_run import TaskRun
from tests.shared.jobs.test_reader import NODES, answered, record, searching
from workers.merge.early import early_answer

TEXTS = {
    "0.0": "The founder of Northwind was born by the sea.",
    "0.1": "Northwind was founded by Ada Lovelace in 1840.",
    "0.2": "Ada Lovelace was born in London.",
}


@pytest.fixture
def jobs(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


def early(jobs: JobStore, job_id: str) -> Answer:
    """The answer so far; that asking for it writes nothing is checked here."""
    job: Any = jobs.job(job_id)
    before = everything(jobs.client)
    found = early_answer(TaskRun(SimpleNamespace(name="merge.early"), jobs, job, SimpleNamespace()))  # type: ignore[arg-type]
    assert everything(jobs.client) == before
    return found


def everything(client: Any) -> dict[bytes, bytes | None]:
    """All keys but the heartbeats: a worker that another test has started in this process beats as long as it lives."""
    return {key: client.dump(key) for key in client.scan_iter() if not key.startswith(b"ramify:worker:")}


def recorded(jobs: JobStore, *names: str) -> Job:
    """A job that searches, of which these leaves have answered."""
    job = searching(jobs)
    for name in names:
        if name == "0.2":
            assert jobs.bind(job.id, NODES[2].model_copy(update={"query": "Where was Ada Lovelace born?"}))
        record(jobs, job, name, TEXTS[name])
    return job


def test_given_a_job_that_searches_when_read_early_then_it_says_what_is_there_and_what_is_missing(
    jobs: JobStore,
) -> None:
    found = early(jobs, recorded(jobs, "0.0").id)
    assert (found.state, found.partial, found.coverage) == ("searching", True, "1 of 3 leaves answered")
    assert {leaf.node_id: (leaf.status.value, leaf.error) for leaf in found.leaves} == {
        "0.0": ("done", None), "0.1": ("pending", None), "0.2": ("waiting", None),
    }  # fmt: skip
    assert "born by the sea" in found.summary.text
    assert [hit.chunk_id for hit in found.results] == ["c0.0"]
    assert "Leaf 0.1 ('Who founded Northwind?') has not answered yet: it is not searched yet" in found.warnings
    assert "Leaf 0.2 ('Where was #1 born?') has not answered yet: it waits for 0.1" in found.warnings
    assert "early, while the job is searching" in found.warnings[-1]


@pytest.mark.parametrize("state", [State.CANCELLED, State.EXPIRED, State.FAILED])
def test_given_all_leaves_when_the_job_has_ended_without_an_answer_then_its_text_is_that_of_the_real_merge(
    jobs: JobStore, state: State
) -> None:
    expected, job = answered(jobs, recorded(jobs, *TEXTS)), recorded(jobs, *TEXTS)
    assert jobs.stop(job, state, "for this test")
    found = early(jobs, job.id)
    assert (found.state, found.partial, found.coverage) == (state.value, False, "3 of 3 leaves answered")
    assert (found.summary, found.steps, found.results) == (expected.summary, expected.steps, expected.results)
    assert found.aggregator == expected.aggregator == "reasoning"


def test_given_a_cancelled_job_with_open_leaves_when_read_then_they_failed_since_it_was_cancelled(
    jobs: JobStore,
) -> None:
    job = recorded(jobs, "0.0")
    assert jobs.stop(job, State.CANCELLED, "by me")
    found = early(jobs, job.id)
    assert (found.state, found.partial) == ("cancelled", True)
    assert [leaf.error for leaf in found.leaves] == [
        None,
        "had not answered when the job was cancelled",
        "was still waiting for 0.1 ('Who founded Northwind?') when the job was cancelled",
    ]
    assert "after the job ended cancelled" in found.warnings[-1]


def test_given_a_merged_pool_when_read_early_then_its_order_stands(jobs: JobStore) -> None:
    job_id = recorded(jobs, *TEXTS).id
    merged = early(jobs, job_id)
    assert jobs.start_merging(job_id, "t")
    turned = MergedPool(hits=merged.results[::-1], reranked_by="lexical:v1")
    assert jobs.start_summarising(job_id, turned)
    found = early(jobs, job_id)
    assert (found.state, found.results) == ("summarising", merged.results[::-1])
    jobs.client.set(JobKeys(job_id).pool, b"no blob")
    assert early(jobs, job_id).results == merged.results, "one that cannot be read is made anew"


def test_given_a_leaf_that_failed_when_read_early_then_its_error_is_said(jobs: JobStore) -> None:
    job_id = recorded(jobs, "0.0").id
    jobs.record_leaf(job_id, LeafResult(node_id="0.1", status=LeafStatus.FAILED, error="no store"))
    found = early(jobs, job_id)
    assert found.leaves[1].status is LeafStatus.FAILED
    assert "Leaf 0.1 ('Who founded Northwind?') did not answer: no store" in found.warnings


@pytest.mark.parametrize("names", [(), ("0.1",)])
def test_given_nothing_that_answered_when_read_early_then_one_sentence_says_so(
    jobs: JobStore, names: tuple[str, ...]
) -> None:
    job_id = recorded(jobs).id
    for name in names:
        jobs.record_leaf(job_id, LeafResult(node_id=name, status=LeafStatus.FAILED, error="no store"))
    with pytest.raises(RamifyError, match="is searching, and none of its 3 leaves has answered"):
        early(jobs, job_id)


def test_given_a_chinese_question_when_read_early_then_its_text_is_chinese(jobs: JobStore) -> None:
    job_id = recorded(jobs).id
    question = "北风公司的创始人在哪里出生？"
    raw = jobs.client.hget(JobKeys(job_id).job, "request")
    assert isinstance(raw, bytes)
    request = raw.decode().replace("Where was the founder of Northwind born?", question)
    jobs.client.hset(JobKeys(job_id).job, mapping={"request": request, "question": question})
    hit = Hit(chunk_id="c", doc_id="d", path="d.md", title="北风", text="北风公司的创始人在海边出生。", score=1)
    jobs.record_leaf(job_id, LeafResult(node_id="0.0", status=LeafStatus.DONE, hits=(hit,)))
    assert "在海边出生" in early(jobs, job_id).summary.text


@pytest.mark.parametrize("state", ["searching", "cancelled"])
def test_given_a_node_or_a_result_that_is_lost_when_read_early_then_that_leaf_is_missing(
    jobs: JobStore, state: str
) -> None:
    job = recorded(jobs, "0.0", "0.1")
    jobs.client.hset(JobKeys(job.id).nodes, "0.2", "{no node")
    jobs.client.hdel(JobKeys(job.id).results, "0.1")
    if state == "cancelled":
        assert jobs.stop(job, State.CANCELLED, "by me")
    found = early(jobs, job.id)
    assert (found.state, found.coverage) == (state, "1 of 3 leaves answered")
    assert [leaf.status.value for leaf in found.leaves] == ["done", "failed", "failed"]
    assert "Leaf 0.1 ('Who founded Northwind?') did not answer: its recorded result is lost" in found.warnings
    assert any(warning.startswith("Leaf 0.2 did not answer: ") for warning in found.warnings)
