"""Refreshing stale answers on a real Redis: new jobs that run the touched leaves alone, never two of one answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
import redis
from celery import Celery
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app as command_line
from orchestrator.client import Ramify
from orchestrator.retries.resume import resume, without_stale
from shared.contract import TaskMessage
from shared.errors import InputError, NotFoundError
from shared.jobs import JobStore
from shared.jobs.keys import stale_answers
from shared.jobs.stale import StaleAnswers
from shared.models import BatchStatus, JobStatus
from shared.models.gaps import Gap
from shared.models.stale import StaleBy, StaleMark
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.task_run import TaskRun
from tests.fakes.walked_jobs import WalkedJob, leaf, node, queued


@pytest.fixture(autouse=True)
def _unsubscribed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of chords that nobody waits for would unsubscribe over a connection that nobody closes."""
    monkeypatch.setattr("celery.backends.redis.ResultConsumer.cancel_for", lambda *_: None)


@pytest.fixture
def app(settings: Settings) -> Iterator[Celery]:
    app = make_app(settings)
    yield app
    app.backend.client.connection_pool.disconnect()
    app.close()


def answered(ramify: Ramify, store: JobStore, question: str = "why?") -> str:
    walked = WalkedJob(store, ramify.submit(question))
    assert walked.finish("waiting")
    return walked.id


def mark(store: JobStore, *job_ids: str, leaves: tuple[str, ...] = ("0.1",), tenant: str = "default") -> None:
    mark = StaleMark(doc_id="d1", path="docs/a.md", by=StaleBy.CHANGED, since=1.0, leaves=leaves)
    StaleAnswers(store.client, store.settings, store.clock).mark(tenant, {one: ([mark], ()) for one in job_ids})


def started(store: JobStore, app: Celery, job_id: str) -> bool:
    assert store.start_planning(job_id, "worker")
    job = store.job(job_id)
    assert job is not None
    return resume(TaskRun(None, store, job, TaskMessage(job_id=job_id)), app)  # type: ignore[arg-type]


def ended(store: JobStore, job_id: str) -> None:
    for name, state in store.leaf_states(job_id).items():
        if state != "done":
            store.record_leaf(job_id, leaf(name))
    walked = WalkedJob(store, job_id)
    assert (store.start_merging(job_id, "worker"), walked.summarising(), walked.done()) == (True, True, True)


def test_only_the_touched_leaves_run_again_and_the_new_job_names_its_origin(
    ramify: Ramify, store: JobStore, app: Celery, client: redis.Redis
) -> None:
    old = answered(ramify, store)
    mark(store, old)
    made = ramify.refresh(old)
    assert (made.retry_of, made.taken_over.leaves, made.taken_over.leaves_total) == (old, 2, 3)
    client.delete(*client.keys("plan*"))
    assert started(store, app, made.job_id or "")
    assert store.leaf_states(made.job_id or "") == {"0.0": "done", "0.1": "pending", "0.2": "done"}
    assert queued(client) == {"search": 1}
    status = ramify.status(made.job_id or "")
    assert (status.retry_of, status.stale) == (old, ())
    assert ramify.status(old).retried_as == made.job_id


def test_an_answer_is_never_refreshed_twice_at_once(ramify: Ramify, store: JobStore) -> None:
    old = answered(ramify, store)
    mark(store, old)
    made, refused = list[str](), list[InputError]()

    def refresh() -> None:
        try:
            made.append(ramify.refresh(old).job_id or "")
        except InputError as error:
            refused.append(error)

    threads = [threading.Thread(target=refresh) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 3)
    assert "tried again already" in str(refused[0])


def test_what_is_refreshed_is_meant_by_its_old_id_from_then_on(ramify: Ramify, store: JobStore, app: Celery) -> None:
    first = answered(ramify, store)
    mark(store, first)
    second = ramify.refresh(first).job_id or ""
    assert started(store, app, second)
    ended(store, second)
    assert ramify.stale_jobs() == []
    with pytest.raises(InputError, match="nothing that its answer rests on has changed"):
        ramify.refresh(first)
    mark(store, second, leaves=("0.2",))
    assert [one.job_id for one in ramify.stale_jobs()] == [second]
    third = ramify.refresh(first)
    assert third.retry_of == second


def test_a_refresh_that_failed_may_be_done_again(ramify: Ramify, store: JobStore) -> None:
    old = answered(ramify, store)
    mark(store, old)
    ramify.cancel(ramify.refresh(old).job_id or "")
    assert [one.job_id for one in ramify.stale_jobs()] == [old]
    assert ramify.refresh(old).retry_of == old


def test_of_a_batch_the_stale_answers_alone_are_made_anew_under_their_lines(ramify: Ramify, store: JobStore) -> None:
    taken = ramify.submit_many(["one?", "two?", "three?"])
    for job_id in taken.job_ids:
        assert WalkedJob(store, job_id).finish("waiting")
    with pytest.raises(InputError, match="none of its answers is stale"):
        ramify.refresh(taken.batch_id)
    mark(store, taken.job_ids[1])
    made = ramify.refresh(taken.batch_id)
    assert (made.jobs, made.retry_of) == (1, taken.batch_id)
    (line,) = ramify.batch_lines(made.batch_id or "")
    assert (line.line, ramify.status(line.job_id or "").retry_of) == (2, taken.job_ids[1])
    assert ramify.batch_status(taken.batch_id).refreshes == (made.batch_id,)
    with pytest.raises(InputError, match="refreshed already"):
        ramify.refresh(taken.batch_id)
    (row, *_) = [one for one in ramify.batch_report(taken.batch_id) if one.line == 2]
    assert row.stale == 1


@pytest.fixture
def command(ramify: Ramify, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`ramify ...` on the client of the test; what is waited for ends at once."""

    def follow(client: Ramify, job_id: str) -> JobStatus:
        client.cancel(job_id)
        return client.status(job_id)

    def follow_batch(client: Ramify, batch_id: str) -> BatchStatus:
        client.cancel_batch(batch_id)
        return client.batch_status(batch_id)

    monkeypatch.setattr("orchestrator.client.Ramify", lambda *_: nullcontext(ramify))
    monkeypatch.setattr("orchestrator.cli.follow.follow", follow)
    monkeypatch.setattr("orchestrator.cli.follow.follow_batch", follow_batch)
    return lambda *arguments: CliRunner().invoke(command_line, list(arguments))


def test_the_same_command_waits_for_what_a_killed_client_had_begun(
    ramify: Ramify, store: JobStore, command: Callable[..., Result]
) -> None:
    taken = ramify.submit_many(["one?", "two?", "three?"])
    for job_id in taken.job_ids:
        assert WalkedJob(store, job_id).finish("waiting")
    one, two, three = taken.job_ids
    for given, code in ((taken.batch_id, 3), ("--stale", 3), (one, 1)):
        mark(store, one, two)
        begun = ramify.refresh_stale() if given == "--stale" else ramify.refresh(given)
        new = begun.job_id or begun.batch_id or ""
        refused = command("refresh", given)
        assert (refused.exit_code, "already" in refused.stderr) == (0 if given == "--stale" else 2, True)
        waited = command("refresh", given, "--wait")
        assert f"{new} refreshes {given} already: it is waited for" in waited.stderr
        assert waited.exit_code == code
    begun = ramify.refresh(one)
    mark(store, three)
    both = command("refresh", taken.batch_id, "--wait").stderr
    assert f"{begun.job_id} refreshes {taken.batch_id} already" in both, "besides the batch of what was left"
    assert "of 2 jobs refreshes" in both
    assert ramify.refreshes_under_way(taken.batch_id) == []


def test_all_stale_answers_of_a_tenant_are_one_batch(ramify: Ramify, store: JobStore, client: redis.Redis) -> None:
    jobs = [answered(ramify, store, f"{n}?") for n in range(3)]
    mark(store, *jobs[:2])
    mark(store, jobs[2], tenant="acme")
    client.zadd(stale_answers("default"), {"066f" + 17 * "0": 1.0})  # it has expired
    made = ramify.refresh_stale()
    assert made.jobs == 2
    again = ramify.batch_jobs(made.batch_id or "")
    assert {ramify.status(one).retry_of for one in again} == set(jobs[:2])
    assert client.zcard(stale_answers("default")) == 2, "what has expired is off the list"
    with pytest.raises(InputError, match="no answer is stale"):
        ramify.refresh_stale()


def test_that_answers_are_still_looked_at_is_told(
    ramify: Ramify, store: JobStore, command: Callable[..., Result]
) -> None:
    mark(store, answered(ramify, store))
    stale = StaleAnswers(store.client, store.settings, store.clock)
    stale.note_rechecks("default", ["a", "b"])
    stale.note_rechecks("acme", ["c"])
    assert (ramify.unchecked_answers(), ramify.unchecked_answers(tenant="acme")) == (2, 1)
    said = "answers are still looked at: more may become stale"
    assert f"2 {said}" in command("refresh", "--stale").stderr
    assert f"2 {said}" in command("jobs", "--stale").stderr


def test_an_answer_that_is_fresh_or_of_no_job_is_refused(ramify: Ramify, store: JobStore) -> None:
    with pytest.raises(InputError, match="nothing that its answer rests on"):
        ramify.refresh(answered(ramify, store))
    with pytest.raises(NotFoundError):
        ramify.refresh("0" * 21)
    waiting = ramify.submit("why?")
    with pytest.raises(InputError, match="still queued"):
        ramify.refresh(waiting)


def test_a_leaf_of_the_second_round_goes_and_a_bound_one_stays_bound_when_it_is_stale() -> None:
    added = node("0.3", gap=Gap.model_validate({"signal": "name", "what": "x"}))
    bound = node("0.2", depends_on=("0.1",), asked="who is #1?", bound_by="names")
    nodes = {one.id: one for one in (node("0.1"), bound, added)}
    kept, states = without_stale(nodes, dict.fromkeys(nodes, "done"), ["0.2"])
    assert list(kept) == ["0.1", "0.2"]
    assert states == {"0.1": "done"}
