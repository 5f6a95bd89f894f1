"""A batch that is tried again and repaired, one after the other: neither forgets or contradicts the other."""

from __future__ import annotations

import pytest

from orchestrator.client import Ramify
from orchestrator.retries.retry import Retried
from shared.errors import InputError
from shared.jobs import JobStore
from shared.models.status import BatchWhy
from tests.fakes.walked_jobs import WalkedJob


def walk(store: JobStore, job_ids: list[str] | tuple[str, ...], *degraded: str, partial: tuple[str, ...] = ()) -> None:
    """Bring jobs to their ends; some complete but degraded, some without a leaf."""
    for job_id in job_ids:
        walked = WalkedJob(store, job_id).to("searching")
        if job_id in degraded:
            store.annotate(job_id, item="0.0", degraded=["llm_unavailable"])
        walked.merging(("0.1",) if job_id in partial else ())
        walked.summarising()
        assert walked.done(partial=job_id in partial)


def batch_of(ramify: Ramify, store: JobStore, *, degraded: int, partial: int) -> str:
    made = ramify.submit_many([f"why, {n}?" for n in range(degraded + partial)])
    walk(store, made.job_ids, *made.job_ids[:degraded], partial=tuple(made.job_ids[degraded:]))
    return made.batch_id


def why(ramify: Ramify, batch_id: str) -> BatchWhy:
    found = ramify.why(batch_id)
    assert isinstance(found, BatchWhy)
    return found


def new_batch(ramify: Ramify, store: JobStore, made: Retried) -> str:
    """A retry, all of whose jobs have answered."""
    batch_id = made.batch_id or ""
    walk(store, list(ramify.batch_jobs(batch_id)))
    return batch_id


def test_given_a_repaired_batch_then_a_plain_retry_offers_no_repair(ramify: Ramify, store: JobStore) -> None:
    old = batch_of(ramify, store, degraded=2, partial=1)
    repair = new_batch(ramify, store, ramify.retry(old, degraded=True))
    plain = ramify.retry(old)
    assert (plain.jobs, plain.degraded) == (1, 0)
    again = new_batch(ramify, store, plain)
    for degraded in (False, True):
        with pytest.raises(InputError, match="tried again already") as refused:
            ramify.retry(old, degraded=degraded)
        assert "--degraded" not in str(refused.value)
    status = ramify.batch_status(old)
    assert (status.retries, status.repairs, status.retried_as) == ((again,), (repair,), again)


def test_given_a_batch_of_which_one_answer_was_repaired_alone_then_the_others_are_counted(
    ramify: Ramify, store: JobStore
) -> None:
    old = batch_of(ramify, store, degraded=3, partial=0)
    first = next(iter(ramify.batch_jobs(old)))
    ramify.retry(first, degraded=True)
    with pytest.raises(InputError, match="repairs the 2 that are degraded"):
        ramify.retry(old)
    assert ramify.retry(old, degraded=True).jobs == 2


def test_a_batch_names_all_that_try_it_again_and_what_is_left(ramify: Ramify, store: JobStore) -> None:
    old = batch_of(ramify, store, degraded=2, partial=1)
    found = why(ramify, old)
    assert found.said.startswith("It has ended: 0 of 3 jobs are done, 2 degraded, 1 partial.")
    assert "llm_unavailable (2 jobs)" in found.said
    assert f"`ramify retry --degraded {old}` repairs the degraded ones" in found.said
    assert found.next == f"ramify retry {old}"
    repair = ramify.retry(old, degraded=True).batch_id
    found = why(ramify, old)
    assert f"made again as {repair}. `ramify retry {old}` tries again what has no complete answer" in found.said
    again = ramify.retry(old).batch_id
    found = why(ramify, old)
    assert f"It is tried again as {again}. Its degraded answers are made again as {repair}." in found.said
    assert "`ramify retry" not in found.said
    assert (found.retries, found.repairs, found.next) == ((again,), (repair,), f"ramify why {again}")


def test_given_a_batch_of_degraded_answers_alone_then_the_next_command_repairs(ramify: Ramify, store: JobStore) -> None:
    old = batch_of(ramify, store, degraded=1, partial=0)
    assert why(ramify, old).next == f"ramify retry --degraded {old}"


def test_given_a_repaired_job_then_neither_retry_offers_the_other(ramify: Ramify, store: JobStore) -> None:
    (old,) = ramify.batch_jobs(batch_of(ramify, store, degraded=1, partial=0))
    repaired = ramify.retry(old, degraded=True).job_id or ""
    for degraded in (False, True):
        with pytest.raises(InputError, match=f"tried again already: `ramify why {repaired}`"):
            ramify.retry(old, degraded=degraded)
    walk(store, [repaired])
    for degraded in (False, True):
        with pytest.raises(InputError, match=f"its retry has answered: `ramify result {repaired}`"):
            ramify.retry(old, degraded=degraded)
