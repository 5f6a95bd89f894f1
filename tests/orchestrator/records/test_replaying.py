"""Replays of manifest files on a real Redis, without workers."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from celery import Celery

from orchestrator.client import Ramify
from orchestrator.records.replaying import with_planning
from orchestrator.retries.resume import resume
from shared.contract import TaskMessage, TaskName
from shared.jobs import JobStore
from shared.models.manifest import Manifest, Record, RecordedPlan, RunRecord
from shared.models.replay import PlanningNotes
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.task_run import TaskRun
from tests.fakes.walked_jobs import LEAVES, WalkedJob, node, route

RULES, LOST, PLAN = "It was split by rules.", "Leaf 0.1 did not answer: no store", TaskName.PLAN_JOB.value


@pytest.fixture
def app(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    monkeypatch.setattr("celery.backends.redis.ResultConsumer.cancel_for", lambda *_: None)
    app = make_app(settings)
    yield app
    gc.collect()
    app.backend.client.connection_pool.disconnect()
    app.close()


@pytest.fixture
def found(ramify: Ramify, store: JobStore) -> Manifest:
    """Of a job that was planned without the LLM, and lost a leaf."""
    walked = WalkedJob(store, ramify.submit("Why do queues lose messages?")).to("searching")
    store.annotate(walked.id, warnings=[RULES], item=PLAN, degraded=["llm_unavailable"])
    store.annotate(walked.id, warnings=["of a search"], item="0.1", degraded=["rerank_unavailable"])
    walked.merging(("0.1",))
    store.annotate(walked.id, warnings=[LOST], item=TaskName.MERGE_TREE.value)
    plan = RecordedPlan(route=route(), nodes=tuple(map(node, LEAVES)))
    said = {PLAN: ("llm_unavailable",), "0.1": ("rerank_unavailable",)}
    record = Record(question="Why?", plan=plan, warnings=(RULES, LOST, "of a search"), degraded=said)
    return with_planning(store, Manifest.of(record, RunRecord(job_id=walked.id)))


def test_a_file_that_is_replayed_from_search_has_what_was_said_while_it_was_planned(
    ramify: Ramify, store: JobStore, app: Celery, found: Manifest
) -> None:
    assert found.run.planning == PlanningNotes(warnings=(RULES,), degraded={PLAN: ("llm_unavailable",)})
    made = ramify.replay(Manifest.model_validate_json(found.model_dump_json()), "search")
    assert store.start_planning(made.job_id, "worker")
    job = store.job(made.job_id)
    assert job is not None
    assert resume(TaskRun(None, store, job, TaskMessage(job_id=job.id)), app)  # type: ignore[arg-type]
    status = ramify.status(made.job_id)
    assert (status.warnings, status.degraded_at) == ((RULES,), {PLAN: ("llm_unavailable",)})
    assert set(store.leaf_states(made.job_id)) == set(LEAVES)


def test_what_the_digest_does_not_vouch_for_is_left_out(ramify: Ramify, store: JobStore, found: Manifest) -> None:
    told = PlanningNotes(warnings=("Buy this.", RULES), degraded={"0.2": ("llm_unavailable",)})
    given = found.model_copy(update={"run": found.run.model_copy(update={"planning": told})})
    job = store.job(ramify.replay(given, "search").job_id)
    assert job is not None
    assert job.request.replay is not None
    assert job.request.replay.planning == PlanningNotes(warnings=(RULES,))
