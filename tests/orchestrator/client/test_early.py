"""Reading early through the client, on a real Redis without workers: who makes the answer, and what is said instead."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.client import Ramify
from shared.errors import NotRunningError, RamifyError
from shared.jobs import JobStore
from shared.models.answer import EarlyReply
from tests.fakes.walked_jobs import WalkedJob, answer, leaf


def searching(ramify: Ramify, store: JobStore, leaves: int) -> WalkedJob:
    job = WalkedJob(store, ramify.submit("why?", tenant="acme")).to("searching")
    for number in range(leaves):
        store.record_leaf(job.id, leaf(f"0.{number}"))
    return job


def test_given_nothing_that_has_answered_when_read_early_then_no_pool_is_needed_to_say_so(
    ramify: Ramify, store: JobStore
) -> None:
    job = searching(ramify, store, 0)
    with pytest.raises(RamifyError, match="is searching and none of its 3 leaves has answered yet: `ramify status"):
        ramify.result(job.id, partial=True)
    queued = ramify.submit("how?")
    with pytest.raises(RamifyError, match="is queued and nothing was searched yet"):
        ramify.result(queued, partial=True)
    for job_id in (job.id, queued):
        ramify.cancel(job_id)
        with pytest.raises(RamifyError, match=f"ended cancelled and .*: `ramify retry {job_id}` tries it again"):
            ramify.result(job_id, partial=True)


def test_given_no_merge_pool_when_read_early_then_one_sentence_names_it(
    ramify: Ramify, store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.early._EARLY_S", 0.3)
    monkeypatch.setattr("celery.backends.redis.ResultConsumer.cancel_for", lambda *_: None)
    job = searching(ramify, store, 1)
    with pytest.raises(NotRunningError, match="no merge worker answered"):
        ramify.result(job.id, partial=True)
    assert ramify.status(job.id).state == "searching"


def test_given_leaves_that_answered_when_read_early_then_the_merge_pool_is_asked_for_that_tenants_job(
    ramify: Ramify, store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = searching(ramify, store, 2)
    early, asked = answer(job.job, partial=True).model_copy(update={"state": "searching"}), list[Any]()
    reply = [EarlyReply(answer=early), EarlyReply(error="it cannot be read")]

    def pool(_app: object, _settings: object, name: object, request: Any, _timeout_s: float) -> str:
        asked.append((name, request.job_id, request.tenant))
        return reply.pop(0).model_dump_json()

    monkeypatch.setattr("orchestrator.early.call_pool", pool)
    assert ramify.result(job.id, partial=True) == early
    assert asked == [("merge.early", job.id, "acme")]
    with pytest.raises(RamifyError, match="it cannot be read"):
        ramify.result(job.id, partial=True)


def test_given_a_job_that_is_done_when_read_early_then_its_answer_comes_without_a_pool(
    ramify: Ramify, store: JobStore
) -> None:
    job = WalkedJob(store, ramify.submit("why?")).to("summarising")
    assert job.done()
    assert ramify.result(job.id, partial=True) == ramify.result(job.id)


def test_given_no_answer_but_leaves_when_read_then_the_error_names_what_can_be_read(
    ramify: Ramify, store: JobStore
) -> None:
    job = searching(ramify, store, 2)
    hint = f"`ramify result {job.id} --partial` shows what 2 of its leaves found"
    with pytest.raises(RamifyError, match=f"is searching: wait for it .*; {hint}"):
        ramify.result(job.id)
    ramify.cancel(job.id)
    with pytest.raises(RamifyError, match=f"ended cancelled without an answer: cancelled by the caller; {hint}"):
        ramify.result(job.id)
