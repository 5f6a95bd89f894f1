"""What jobs take of Redis, and whether those of a batch will fit; and what is kept of an answer."""

from __future__ import annotations

import pytest
import redis

from orchestrator.diagnosis.pace import batch_too_slow
from shared.jobs import JobStore, new_id
from shared.jobs.footprint import Footprint, footprint
from shared.models import Answer, JobRequest, LeafResult
from tests.fakes.walked_jobs import WalkedJob, enter
from tests.shared.jobs.test_hit_blobs import HITS, MERGED
from workers.merge.answer import kept


def test_given_ended_and_open_jobs_when_measured_then_those_that_have_ended_count(
    store: JobStore, client: redis.Redis
) -> None:
    assert footprint(client).measured == 0
    ids = [new_id() for _ in range(3)]
    store.enqueue([(job_id, JobRequest(question="why? " * 100)) for job_id in ids])
    assert footprint(client).measured == 0
    for job_id in ids[:2]:
        WalkedJob(store, job_id).finish("admitted")
    found = footprint(client)
    keys = client.keys(f"*{{{ids[0]}}}*")
    assert found.measured == 2
    assert found.job_bytes == pytest.approx(sum(client.memory_usage(key, samples=0) or 0 for key in keys), rel=0.2)


def test_given_a_batch_whose_answers_do_not_fit_when_submitted_then_it_is_warned_of(
    store: JobStore, client: redis.Redis
) -> None:
    batch_id = new_id()
    store.batches.open(batch_id)
    enter(store, batch_id, [(new_id(), JobRequest(question=f"q{n}")) for n in range(40)])
    assert batch_too_slow(store, batch_id) is None
    used = int(client.info("memory")["used_memory"])
    before = client.config_get("maxmemory")["maxmemory"]
    client.config_set("maxmemory", used + 1_000_000)
    try:
        warning = batch_too_slow(store, batch_id) or ""
    finally:
        client.config_set("maxmemory", before)
    assert "the answers of its 40 open jobs need about 2 MB" in warning
    assert "room for about 1" in warning


@pytest.mark.parametrize(("limit", "jobs", "too_much"), [(0, 10**9, False), (1000, 9, False), (1000, 10, True)])
def test_given_a_limit_when_jobs_are_foreseen_then_those_that_fit_fit(limit: int, jobs: int, too_much: bool) -> None:
    assert Footprint(job_bytes=100, measured=1, used=100, limit=limit).too_much(jobs) is too_much


def test_given_an_answer_when_less_is_to_be_kept_then_texts_go_but_never_what_a_retry_needs() -> None:
    leaves = (LeafResult(node_id="0.1", status="done", hits=HITS),)
    whole = Answer(job_id="j", question="q", state="done", coverage="all", results=MERGED, leaves=leaves)
    assert kept(whole, "full") == whole
    less, least = kept(whole, "answer"), kept(whole, "summary")
    assert (less.leaves[0].hits, less.leaves[0].status, less.results) == ((), "done", whole.results)
    assert [(hit.chunk_id, hit.text, hit.score) for hit in least.results] == [
        (hit.chunk_id, "", hit.score) for hit in whole.results
    ]
    for update in ({"partial": True}, {"degraded": ("out_of_time",)}):
        assert kept(changed := whole.model_copy(update=update), "summary") == changed
