"""Retry on a real Redis: new jobs for ended ones, what they take over, what is refused, and batches of them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import redis
from celery import Celery

from orchestrator.client import Ramify
from orchestrator.retries.resume import resume
from shared.contract import TaskMessage
from shared.errors import InputError, LaneFullError, NotFoundError, RamifyError
from shared.jobs import JobStore, State
from shared.jobs.keys import JobKeys, new_id
from shared.models import Cost, JobRequest
from shared.providers.metering import money_of
from shared.settings import Settings, load_settings
from shared.tasks.app import make_app
from shared.tasks.task_run import TaskRun
from tests.fakes.walked_jobs import WalkedJob, leaf, queued


def partial(ramify: Ramify, store: JobStore, failed: tuple[str, ...] = ("0.1",), **options: Any) -> WalkedJob:
    """A job that is done, but for some leaves."""
    walked = WalkedJob(store, ramify.submit("Why do queues lose messages?", **options)).to("searching")
    store.annotate(walked.id, warnings=["it was split by rules"])
    walked.merging(failed)
    store.annotate(walked.id, warnings=["Leaf 0.1 did not answer: no store"])
    walked.summarising()
    assert walked.done(partial=True)
    return walked


@pytest.fixture(autouse=True)
def _unsubscribed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Results of chords that nobody waits for would unsubscribe over a connection that nobody closes."""
    monkeypatch.setattr("celery.backends.redis.ResultConsumer.cancel_for", lambda *_: None)
    yield
    gc.collect()


@pytest.fixture
def app(settings: Settings) -> Iterator[Celery]:
    app = make_app(settings)
    yield app
    gc.collect()
    app.backend.client.connection_pool.disconnect()
    app.close()


def step_of(store: JobStore, app: Celery, job_id: str) -> tuple[TaskRun, Celery]:
    assert store.start_planning(job_id, "worker")
    job = store.job(job_id)
    assert job is not None
    return TaskRun(None, store, job, TaskMessage(job_id=job_id)), app  # type: ignore[arg-type]  # no task is asked


def test_a_retry_may_give_the_new_jobs_more_time(ramify: Ramify, store: JobStore) -> None:
    old = partial(ramify, store, deadline_s=5, queue_limit_s=60)
    for given, expected in (({}, (5, 60)), ({"deadline_s": 90.0}, (90, 60)), ({"queue_limit_s": 600.0}, (5, 600))):
        new = store.job(ramify.retry(old.id, **given).job_id or "")
        assert new is not None
        assert (new.request.deadline_s, new.request.queue_limit_s) == expected
        assert new.deadline_s == expected[0]
        ramify.cancel(new.id)
    taken = ramify.submit_many(["why?", "what?"], deadline_s=5)
    ramify.cancel_batch(taken.batch_id)
    again = ramify.batch_jobs(ramify.retry(taken.batch_id, deadline_s=7).batch_id or "")
    assert [job.deadline_s for job_id in again if (job := store.job(job_id))] == [7, 7]


def test_a_retry_may_say_anew_what_is_done_while_a_server_fails(ramify: Ramify, store: JobStore) -> None:
    old = partial(ramify, store, on_outage="wait")
    assert asked_on_outage(store, ramify.retry(old.id, on_outage="degrade").job_id) == "degrade"
    other = partial(ramify, store, on_outage="wait")
    assert asked_on_outage(store, ramify.retry(other.id).job_id) == "wait", "as before"
    taken = ramify.submit_many(["why?", "what?"])
    ramify.cancel_batch(taken.batch_id)
    again = ramify.batch_jobs(ramify.retry(taken.batch_id, on_outage="degrade").batch_id or "")
    assert [asked_on_outage(store, job_id) for job_id in again] == ["degrade", "degrade"]


def asked_on_outage(store: JobStore, job_id: str | None) -> str | None:
    job = store.job(job_id or "")
    return job.request.on_outage if job else None


@pytest.mark.parametrize(
    "given", [{"deadline_s": 0}, {"deadline_s": float("nan")}, {"queue_limit_s": -1}, {"on_outage": "maybe"}]
)
def test_a_limit_that_cannot_be_is_refused_before_anything_is_tried(ramify: Ramify, given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(InputError, match=name) as raised:
        ramify.retry("0" * 21, **given)
    assert raised.value.exit_code == 2


def test_a_partial_job_is_tried_again_and_only_what_failed_is_sent(
    ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis
) -> None:
    old = partial(ramify, store, idempotency_key="k", top_n=7)
    made = ramify.retry(old.id)
    assert made.job_id is not None
    assert made.job_id != old.id
    new = store.job(made.job_id)
    assert new is not None
    assert (new.request.question, new.request.top_n, new.request.idempotency_key) == (*_asked(old), None)
    client.delete(*client.keys("plan*"))
    assert resume(*step_of(store, app, new.id))
    assert store.leaf_states(new.id) == {"0.0": "done", "0.1": "pending", "0.2": "done"}
    assert queued(client) == {"search": 1}, "one leaf, no body yet"
    status = ramify.status(new.id)
    assert (status.retry_of, status.leaves_done, status.leaves_total, status.retried_as) == (old.id, 2, 3, None)
    assert status.route is not None
    assert status.warnings == ("it was split by rules",), "what was said of the old end holds no more"
    assert ramify.status(old.id).retried_as == new.id
    assert ramify.status(old.id).state == "done", "an end is an end"
    kinds = [event["type"] for event in store.events(new.id, 100)]
    assert "taken_over" in kinds
    store.record_leaf(new.id, leaf("0.1"))
    walked = WalkedJob(store, new.id)
    assert (store.start_merging(new.id, "worker"), walked.summarising(), walked.done()) == (True, True, True)


def _asked(walked: WalkedJob) -> tuple[str, int | None]:
    return walked.job.request.question, walked.job.request.top_n


def test_a_job_whose_merge_failed_is_merged_anew_and_nothing_is_searched(
    ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis
) -> None:
    old = WalkedJob(store, ramify.submit("why?")).to("merging")
    store.stop(old.job, State.FAILED, "merge.tree: internal error")
    new = ramify.retry(old.id).job_id or ""
    client.delete(*client.keys("plan*"))
    assert resume(*step_of(store, app, new))
    assert queued(client) == {"merge": 1}
    assert set(store.leaf_states(new).values()) == {"done"}


@pytest.mark.parametrize("gone", ["everything", "blobs", "damaged"])
def test_what_has_expired_or_is_damaged_is_planned_anew_and_says_so(
    ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis, gone: str
) -> None:
    old = partial(ramify, store)
    keys = JobKeys(old.id)
    new = ramify.retry(old.id).job_id or ""
    if gone == "everything":
        client.delete(*vars(keys).values())
    elif gone == "blobs":
        client.delete(keys.nodes, keys.leaves, keys.results)
    else:
        client.hset(keys.nodes, "0.0", "{no node")
    assert not resume(*step_of(store, app, new))
    said = " ".join(ramify.status(new).warnings)
    assert "planned anew" in said
    assert store.leaf_states(new) == {}


def test_a_recorded_leaf_that_is_damaged_runs_again(
    ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis
) -> None:
    old = WalkedJob(store, ramify.submit("Why do queues lose messages?")).to("searching")
    old.merging(("0.1",))
    ramify.cancel(old.id)
    client.hset(JobKeys(old.id).results, "0.0", b"no blob at all")
    new = ramify.retry(old.id).job_id or ""
    assert resume(*step_of(store, app, new))
    assert store.leaf_states(new) == {"0.0": "pending", "0.1": "pending", "0.2": "done"}


def test_a_retry_of_a_retry_that_never_ran_takes_over_from_the_first(
    ramify: Ramify, store: JobStore, app: Celery
) -> None:
    old = partial(ramify, store)
    second = ramify.retry(old.id).job_id or ""
    ramify.cancel(second)
    third = ramify.retry(second).job_id or ""
    assert resume(*step_of(store, app, third))
    assert [state for _, state in sorted(store.leaf_states(third).items())] == ["done", "pending", "done"]


def test_a_worker_that_is_killed_in_the_middle_leaves_a_job_that_can_end(
    ramify: Ramify, store: JobStore, app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """given a takeover that stops after its first leaf / then the others are pending: the reaper sends those."""
    old = partial(ramify, store)
    new = ramify.retry(old.id).job_id or ""
    real, calls = store.record_leaf, list[str]()

    def killed(job_id: str, result: Any) -> int:
        if calls:
            raise KeyboardInterrupt
        calls.append(job_id)
        return real(job_id, result)

    step, app = step_of(store, app, new)
    with monkeypatch.context() as patch:
        patch.setattr(store, "record_leaf", killed)
        with pytest.raises(KeyboardInterrupt):
            resume(step, app)
    assert store.leaf_states(new) == {"0.0": "done", "0.1": "pending", "0.2": "pending"}
    assert not store.start_planning(new, "another worker"), "it is planned"
    walked = WalkedJob(store, new)
    assert (walked.merging(), walked.summarising(), walked.done()) == (True, True, True)


def test_another_tenants_job_is_not_taken_over_at_either_end(
    ramify: Ramify, store: JobStore, app: Celery, settings: Settings
) -> None:
    old = partial(ramify, store, tenant="acme")
    for name in ("default", "ACME"):
        with Ramify(settings, tenant=name) as stranger, pytest.raises(NotFoundError):
            stranger.retry(old.id)
    assert ramify.status(old.id).retried_as is None
    forged = new_id()
    store.enqueue([(forged, JobRequest(question="why?", tenant="evil"))], retry_of={forged: old.id})
    step, app = step_of(store, app, forged)
    with pytest.raises(RamifyError, match="another tenant"):
        resume(step, app)
    assert store.leaf_states(forged) == {}
    with pytest.raises(InputError):
        ramify.submit({"question": "why?", "retry_of": old.id})
    with Ramify(settings, tenant="acme") as owner:
        assert owner.retry(old.id).job_id


def test_of_many_that_try_a_job_again_at_once_one_does(ramify: Ramify, store: JobStore, settings: Settings) -> None:
    old, made, barrier = partial(ramify, store), list[str](), threading.Barrier(8)

    def run() -> None:
        with Ramify(settings) as own:
            barrier.wait(timeout=10)
            with suppress(InputError):
                made.append(own.retry(old.id).job_id or "")

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert made == [ramify.status(old.id).retried_as]


def test_what_cannot_be_tried_again_is_refused_in_a_sentence(ramify: Ramify, store: JobStore) -> None:
    walked = WalkedJob(store, ramify.submit("why?"))
    with pytest.raises(InputError, match="it is still queued"):
        ramify.retry(walked.id)
    walked.to("summarising").done()
    with pytest.raises(InputError, match="done and complete"):
        ramify.retry(walked.id)
    for unknown in ("0" * 21, "", "{x}"):
        with pytest.raises(NotFoundError, match="no such job or batch"):
            ramify.retry(unknown)


def test_an_answered_retry_ends_the_retries_of_its_job(ramify: Ramify, store: JobStore) -> None:
    old = partial(ramify, store)
    new = WalkedJob(store, ramify.retry(old.id).job_id or "")
    new.to("summarising").done()
    with pytest.raises(InputError, match="its retry has answered"):
        ramify.retry(old.id)


def test_a_batch_is_tried_again_as_a_batch_of_what_is_not_answered(ramify: Ramify, store: JobStore) -> None:
    batch = ramify.submit_many([f"why, {n}?" for n in range(6)], batch_budget={"max_calls": 9})
    ids = batch.job_ids
    for job_id in ids[:2]:
        WalkedJob(store, job_id).to("summarising").done()
    WalkedJob(store, ids[2]).to("summarising").done(partial=True)
    with pytest.raises(InputError, match="3 of its jobs are still open"):
        ramify.retry(batch.batch_id)
    for job_id, state in zip(ids[3:], (State.FAILED, State.EXPIRED, State.CANCELLED), strict=True):
        ramify.cancel(job_id, state, "why not")
    made = ramify.retry(batch.batch_id)
    assert (made.jobs, made.retry_of) == (4, batch.batch_id)
    new = ramify.batch_status(made.batch_id or "")
    assert (new.enqueued, new.finished, new.retry_of) == (4, 0, batch.batch_id)
    assert new.budget is not None
    assert new.budget.max_calls == 9
    assert ramify.batch_status(batch.batch_id).retried_as == made.batch_id
    olds = {job.retry_of for job_id in ramify.batch_jobs(made.batch_id or "") if (job := store.job(job_id))}
    assert olds == set(ids[2:])
    with pytest.raises(InputError, match="none of its jobs is left"):
        ramify.retry(batch.batch_id)


def test_a_batch_that_a_full_lane_cuts_off_goes_on_where_it_was(client: redis.Redis, settings: Settings) -> None:
    lanes = {"max_waiting_batch": 10, "tenant_share": 1.0, "under_way": 2}
    small = load_settings(redis={"url": settings.redis.url}, data_dir=settings.data_dir, lanes=lanes)
    with Ramify(small) as ramify:
        for _ in range(3):
            ramify.submit("it takes a place", lane="batch")
        batch = ramify.submit_many([f"why, {n}?" for n in range(8)])
        ramify.cancel_batch(batch.batch_id)
        extra = [ramify.submit(f"in between {n}", lane="batch") for n in range(4)]
        with pytest.raises(LaneFullError, match=r"has 4 jobs: `ramify retry \w+` again takes the others"):
            ramify.retry(batch.batch_id)
        for job_id in extra:
            ramify.cancel(job_id)
        rest = ramify.retry(batch.batch_id)
        assert rest.jobs == 4
        tried = [ramify.status(job_id).retried_as for job_id in batch.job_ids]
        assert None not in tried
        assert len(set(tried)) == len(batch.job_ids), "each once"


def degraded(ramify: Ramify, store: JobStore, *items: str, failed: tuple[str, ...] = ()) -> WalkedJob:
    """A job that is done, with parts that were made without the LLM. Each leaf and the plan had their cost."""
    walked = WalkedJob(store, ramify.submit("Why do queues lose messages?")).to("searching")
    for item in ("plan.job", "0.0", "0.1", "0.2", "merge.summarise"):
        reasons = ["llm_unavailable"] if item in items else []
        store.annotate(walked.id, Cost(llm_calls=1, llm_tokens_in=10), [f"about {item}"], item=item, degraded=reasons)
    walked.merging(failed)
    walked.summarising()
    assert walked.done(partial=bool(failed))
    return walked


def begun(ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis, old: str, **options: bool) -> str:
    """The retry of a job, as its planning has left it."""
    new = ramify.retry(old, **options).job_id or ""
    client.delete(*client.keys("plan*"))
    assert resume(*step_of(store, app, new))
    return new


def test_of_a_degraded_job_exactly_the_degraded_leaf_is_made_again(
    ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis
) -> None:
    old = degraded(ramify, store, "0.1", "merge.summarise")
    with pytest.raises(InputError, match=r"complete, but degraded \(llm_unavailable\): `ramify retry --degraded"):
        ramify.retry(old.id)
    new = begun(ramify, store, app, client, old.id, degraded=True)
    assert store.leaf_states(new) == {"0.0": "done", "0.1": "pending", "0.2": "done"}
    status = ramify.status(new)
    assert status.degraded == ()
    assert set(status.warnings) == {"about plan.job", "about 0.0", "about 0.2"}
    again = ramify.status(old.id)
    assert again.retried_as == new
    with pytest.raises(InputError, match="tried again already"):
        ramify.retry(old.id, degraded=True)


def test_a_degraded_summary_alone_is_written_again_and_nothing_is_searched(
    ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis
) -> None:
    old = degraded(ramify, store, "merge.summarise")
    made = ramify.retry(old.id, degraded=True)
    assert (made.taken_over.leaves, made.taken_over.leaves_total) == (3, 3)
    assert made.taken_over.saved == Cost(llm_calls=4, llm_tokens_in=40), "all but the summary"
    client.delete(*client.keys("plan*"))
    assert resume(*step_of(store, app, made.job_id or ""))
    assert queued(client) == {"merge": 1}


def test_a_degraded_plan_is_made_anew(ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis) -> None:
    old = degraded(ramify, store, "plan.job")
    made = ramify.retry(old.id, degraded=True)
    assert made.taken_over.saved == Cost()
    assert not resume(*step_of(store, app, made.job_id or ""))


def test_a_plain_retry_keeps_what_was_degraded_and_says_so_in_the_new_job(
    ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis
) -> None:
    old = degraded(ramify, store, "plan.job", "0.0", "0.1", "merge.summarise", failed=("0.1",))
    new = begun(ramify, store, app, client, old.id)
    assert store.leaf_states(new) == {"0.0": "done", "0.1": "pending", "0.2": "done"}
    assert ramify.status(new).degraded_at == {"plan.job": ("llm_unavailable",), "0.0": ("llm_unavailable",)}


def test_a_degraded_plan_of_which_no_leaf_holds_is_made_anew_and_saves_nothing(
    ramify: Ramify, store: JobStore, app: Celery
) -> None:
    old = degraded(ramify, store, "plan.job", failed=("0.0", "0.1", "0.2"))
    made = ramify.retry(old.id)
    assert (made.taken_over.leaves, made.taken_over.leaves_total, made.taken_over.saved) == (0, 3, Cost())
    assert not resume(*step_of(store, app, made.job_id or ""))


def test_what_was_made_without_something_and_holds_counts_as_no_saving(ramify: Ramify, store: JobStore) -> None:
    old = degraded(ramify, store, "plan.job", "0.0", failed=("0.1",))
    made = ramify.retry(old.id)
    assert (made.taken_over.leaves, made.taken_over.saved) == (2, Cost(llm_calls=1, llm_tokens_in=10)), "leaf 0.2"


def test_a_job_without_an_answer_or_with_a_whole_one_is_not_repaired(ramify: Ramify, store: JobStore) -> None:
    failed = WalkedJob(store, ramify.submit("why?")).to("searching")
    store.stop(failed.job, State.FAILED, "no store")
    with pytest.raises(InputError, match="ended failed"):
        ramify.retry(failed.id, degraded=True)
    whole = degraded(ramify, store)
    with pytest.raises(InputError, match="nothing was left out"):
        ramify.retry(whole.id, degraded=True)


def test_of_a_batch_the_degraded_answers_are_repaired_and_the_others_are_tried_again_apart(
    ramify: Ramify, store: JobStore
) -> None:
    made = ramify.submit_many(["one?", "two?", "three?"])
    jobs = [WalkedJob(store, job_id).to("searching") for job_id in made.job_ids]
    store.annotate(jobs[0].id, Cost(llm_calls=2), item="0.0", degraded=["llm_unavailable"])
    for walked, failed in zip(jobs, ((), ("0.1",), ()), strict=True):
        walked.merging(failed)
        walked.summarising()
        walked.done(partial=bool(failed))
    plain = ramify.retry(made.batch_id)
    assert (plain.jobs, plain.degraded) == (1, 1)
    assert (plain.taken_over.leaves, plain.taken_over.leaves_total) == (2, 3)
    repair = ramify.retry(made.batch_id, degraded=True)
    assert (repair.jobs, repair.degraded, repair.taken_over.leaves) == (1, 0, 2)
    (new,) = ramify.batch_jobs(repair.batch_id or "")
    assert ramify.status(new).retry_of == jobs[0].id
    with pytest.raises(InputError, match="tried again already"):
        ramify.retry(made.batch_id, degraded=True)


def test_what_is_saved_is_said_in_money_where_the_prices_are_known(settings: Settings) -> None:
    prices = {"llm_input": {"m": 2.0}, "llm_output": {"m": 4.0}}
    known = load_settings(**{**settings.model_dump(include={"data_dir"}), "llm_model": "m", "prices": prices})
    cost = Cost(llm_calls=1, llm_tokens_in=1_000_000, llm_tokens_out=500_000)
    assert money_of(cost, known) == 4.0
    assert money_of(cost + Cost(embed_calls=1, embed_tokens=1), known) == 4.0, "a model of our own costs nothing"
    embedding = {"provider": "endpoint", "base_url": "http://h/v1", "model": "e"}
    assert money_of(Cost(embed_calls=1), load_settings(embedding=embedding)) is None
    assert money_of(Cost(), settings) == 0.0
