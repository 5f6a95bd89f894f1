"""The root rerank: once for each merge, and never without the merged pool."""

from __future__ import annotations

import redis

from shared.contract import TaskName
from shared.jobs import JobStore, State, new_id
from shared.jobs.keys import JobKeys
from shared.models import JobRequest, MergedPool
from tests.fakes.walked_jobs import WalkedJob

_TASK = TaskName.RERANK_ROOT.value


def merging(store: JobStore) -> WalkedJob:
    job_id = new_id()
    store.enqueue([(job_id, JobRequest(question="why?"))])
    store.admit()
    job = WalkedJob(store, job_id).to("merging")
    assert store.put_pool(job_id, MergedPool())
    return job


def claimed(store: JobStore, job: WalkedJob, claimant: str) -> bool:
    return store.work.begin(job.id, _TASK, _TASK, claimant=claimant).claimed


def test_of_two_deliveries_one_reranks_and_a_merge_that_is_done_again_frees_the_claim(store: JobStore) -> None:
    job = merging(store)
    assert [claimed(store, job, name) for name in ("first", "second", "first")] == [True, False, True]
    assert store.start_merging(job.id, "worker")
    assert claimed(store, job, "second")


def test_a_job_that_is_not_merging_is_not_reranked(store: JobStore) -> None:
    job = merging(store)
    assert job.summarising()
    assert not claimed(store, job, "late")


def test_a_pool_that_cannot_be_read_counts_as_lost(store: JobStore, client: redis.Redis) -> None:
    job = merging(store)
    key = JobKeys(job.id).pool
    for rubbish in (b"no blob", b"\xff\xfe"):
        client.set(key, rubbish)
        assert store.pool(job.id) is None
    client.delete(key)
    client.rpush(key, "a list")
    assert store.pool(job.id) is None
    assert store.put_pool(job.id, MergedPool()), "a merge that is done again writes over it"
    assert store.pool(job.id) == MergedPool()
    assert job.job.state is State.MERGING
