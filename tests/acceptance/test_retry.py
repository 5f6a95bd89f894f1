"""Retry, why and dead letters on a whole stack: what was answered stays, what failed is asked again."""

from __future__ import annotations

import time

import pytest

from orchestrator.client import Ramify
from shared.jobs import JobStore, connect
from shared.jobs.keys import JobKeys
from shared.models import Answer
from shared.models.status import Why
from tests.support.spoilt import fail_leaf
from tests.support.waiting import until

PLAN = ["What is a visibility timeout?", "What follows from #1?", "缓存击穿是什么？"]


def spoilt(ramify: Ramify, node_id: str = "0.1") -> tuple[str, Answer]:
    """A job that is done, with one leaf that did not answer, and its answer when all had."""
    job_id = ramify.submit("How do queues lose work?", subqueries=PLAN)
    assert ramify.wait(job_id).state == "done"
    before = ramify.result(job_id)
    client = connect(ramify.settings)
    fail_leaf(client, job_id, node_id)
    client.close()
    return job_id, before


def why(ramify: Ramify, job_id: str) -> Why:
    found = ramify.why(job_id)
    assert isinstance(found, Why)
    return found


def test_only_the_failed_leaf_and_the_one_that_waited_for_it_run_again(ramify: Ramify) -> None:
    old, before = spoilt(ramify)
    said = why(ramify, old)
    assert "partial: 3 of 4 leaves answered; leaf 0.1 failed: the store was away" in said.said
    assert said.next == f"ramify retry {old}"
    new = ramify.retry(old).job_id or ""
    status = ramify.wait(new)
    assert (status.state, status.partial, status.leaves_done, status.retry_of) == ("done", False, 4, old)
    searched = {event.data["id"] for event in ramify.stream(new) if event.data.get("status") == "searched"}
    assert searched == {"0.1", "0.2"}, "0.0 and 0.3 were taken over"
    answer = ramify.result(new)
    assert [node.id for node in answer.tree] == [node.id for node in before.tree]
    kept = {leaf.node_id: [hit.chunk_id for hit in leaf.hits] for leaf in before.leaves}
    for leaf in answer.leaves:
        assert [hit.chunk_id for hit in leaf.hits] == kept[leaf.node_id], "the same corpus gives the same hits"
    assert ramify.status(old).retried_as == new
    assert why(ramify, new).next == f"ramify result {new}"


def test_a_job_that_was_cancelled_in_line_is_asked_from_the_start(ramify: Ramify) -> None:
    job_id = ramify.submit("What is vacuum?", lane="batch")
    ramify.cancel(job_id)
    if ramify.status(job_id).state != "cancelled":  # it was quicker
        pytest.skip("the job had ended before it could be cancelled")
    new = ramify.retry(job_id).job_id or ""
    assert ramify.wait(new).state == "done"
    assert ramify.result(new).summary.text


def test_a_list_is_read_anew(ramify: Ramify) -> None:
    job_id = ramify.submit("List all notes about queues")
    assert ramify.wait(job_id).state == "done"
    client = connect(ramify.settings)
    client.hset(JobKeys(job_id).job, "partial", "1")
    client.close()
    new = ramify.retry(job_id).job_id or ""
    assert ramify.wait(new).state == "done"
    old_table, table = ramify.result(job_id).table, ramify.result(new).table
    if old_table is not None:
        assert table is not None
        assert table.scanned == old_table.scanned


def test_a_batch_is_cancelled_and_then_tried_again(ramify: Ramify) -> None:
    batch = ramify.submit_many([f"How do queues lose work, case {n}?" for n in range(60)])
    began = time.monotonic()
    cancelled = ramify.cancel_batch(batch.batch_id)
    assert time.monotonic() - began < 10
    status = ramify.batch_status(batch.batch_id)
    assert status.terminal, "counts are right at once"
    assert status.cancelled == cancelled > 0
    made = ramify.retry(batch.batch_id)
    assert made.jobs == cancelled
    until(lambda: ramify.batch_status(made.batch_id or "").terminal, 90, "the batch ends", 0.3)
    assert ramify.batch_status(made.batch_id or "").outcomes() == {"done": cancelled}
    jobs = JobStore(connect(ramify.settings), ramify.settings)
    assert {jobs.retries.read([job_id])[job_id].retried_as for job_id in ramify.batch_jobs(made.batch_id or "")} == {""}
