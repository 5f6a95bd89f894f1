"""What became of each line of a batch and what it has cost, and lists of jobs by what is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

import shared.jobs.job_list
from orchestrator.client import Ramify
from shared.errors import InputError, NotFoundError
from shared.jobs import JobStore, State
from shared.jobs.keys import JobKeys
from shared.models import Cost
from shared.models.degraded import Degradation
from shared.settings import Settings, load_settings
from tests.fakes.walked_jobs import WalkedJob

PRICES = {"llm_input": {"m": 1.0}, "llm_output": {"m": 4.0}, "rerank": {"r": 2.0}}
QUESTIONS = [
    {"question": "one?", "idempotency_key": "k1", "id": 17, "meta": {"team": "db"}},
    {"question": "two?", "idempotency_key": "k2"},
    {"question": "", "id": "bad"},
    {"question": "one?", "idempotency_key": "k1"},
    {"question": "five?"},
]


@pytest.fixture
def ramify(client: redis.Redis, settings: Settings) -> Iterator[Ramify]:
    with Ramify(settings) as ramify:
        yield ramify


@pytest.fixture
def store(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


def test_a_report_has_a_row_for_each_line_with_what_became_of_it(ramify: Ramify, store: JobStore) -> None:
    before = ramify.submit("two?", idempotency_key="k2")
    batch = ramify.submit_many(QUESTIONS)
    first, last = batch.job_ids[0], batch.job_ids[3]
    store.annotate(
        first, Cost(llm_calls=2, llm_tokens_in=300, embed_calls=1), item="0.1", degraded=[Degradation.OUT_OF_TIME]
    )
    assert WalkedJob(store, first).to("summarising").done()
    ramify.cancel(last, State.FAILED, "no store")
    one, two, bad, again, five = ramify.batch_report(batch.batch_id)
    assert [row.line for row in (one, two, bad, again, five)] == [1, 2, 3, 4, 5]
    assert (one.id, one.meta, one.key, one.kind, one.job_id) == (17, {"team": "db"}, "k1", "enqueued", first)
    assert (one.state, one.outcome, one.reasons) == ("done", "degraded", ("out_of_time",))
    assert (one.leaves_total, one.leaves_done, one.leaves_failed) == (3, 3, 0)
    assert (one.spent.llm_calls, one.spent.llm_tokens_in, one.question) == (2, 300, "one?")
    assert one.waited_s is not None
    assert one.ran_s is not None
    assert (two.kind, two.job_id, two.state, two.outcome, two.error) == ("known", before, "queued", None, None)
    assert (bad.kind, bad.id, bad.job_id, bad.state) == ("rejected", "bad", None, None)
    assert bad.error
    assert (again.kind, again.job_id, again.outcome, again.spent) == ("duplicate", first, "degraded", Cost())
    assert (five.state, five.outcome, five.error) == ("failed", "failed", "no store")


def test_a_job_that_is_gone_keeps_its_outcome(ramify: Ramify, store: JobStore, client: redis.Redis) -> None:
    batch = ramify.submit_many(["one?", "two?"])
    ramify.cancel(batch.job_ids[0])
    client.delete(*(JobKeys(job_id).job for job_id in batch.job_ids))
    assert [(row.state, row.outcome) for row in ramify.batch_report(batch.batch_id)] == [
        ("gone", "cancelled"),
        ("gone", None),
    ]
    assert store.batches.reconcile(batch.batch_id) == 1
    assert ramify.batch_status(batch.batch_id).outcomes() == {"expired": 1, "cancelled": 1}
    with pytest.raises(NotFoundError):
        list(ramify.batch_report("0" * 21))


def test_money_is_there_where_prices_are_known(client: redis.Redis, settings: Settings) -> None:
    llm = {"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "m", "prices": PRICES}
    known = load_settings(redis={"url": settings.redis.url}, data_dir=settings.data_dir, **llm)
    with Ramify(known) as ramify:
        batch = ramify.submit_many(["Why do queues lose messages?", "two?", "three?"])
        jobs = JobStore(client, known)
        jobs.annotate(batch.job_ids[0], Cost(llm_calls=3, llm_tokens_in=1_000_000, llm_tokens_out=500_000))
        jobs.annotate(batch.job_ids[2], Cost(embed_calls=1, embed_tokens=50))
        one, two, three = ramify.batch_report(batch.batch_id)
        assert (one.cost_spent, two.cost_spent, three.cost_spent) == (3.0, 0.0, 0.0), "models in the workers are free"
        assert one.cost_estimated
        assert 0 <= one.cost_estimated[0] < one.cost_estimated[1] < 10
    unknown = known.model_copy(update={"llm_model": "other"})
    with Ramify(unknown) as ramify:
        one, two, _ = ramify.batch_report(batch.batch_id)
        assert (one.cost_spent, two.cost_spent, one.cost_estimated) == (None, 0.0, None)


def test_a_retry_of_a_batch_keeps_lines_ids_and_keys(ramify: Ramify, store: JobStore) -> None:
    batch = ramify.submit_many(QUESTIONS)
    assert WalkedJob(store, batch.job_ids[1]).to("summarising").done()
    ramify.cancel_batch(batch.batch_id)
    again = ramify.retry(batch.batch_id).batch_id or ""
    rows = list(ramify.batch_report(again))
    assert [(row.line, row.id, row.key, row.question) for row in rows] == [
        (1, 17, "k1", "one?"),
        (5, None, None, "five?"),
    ]
    status = ramify.batch_status(again)
    assert (status.lines, status.enqueued, status.open) == (2, 2, 2)
    assert status.closed_at


def test_jobs_are_found_by_state_batch_tenant_and_reason_whatever_came_later(ramify: Ramify, store: JobStore) -> None:
    batch = ramify.submit_many(QUESTIONS)
    first, second, _, last = batch.job_ids
    store.annotate(first, item="0.1", degraded=[Degradation.OUT_OF_TIME])
    WalkedJob(store, first).to("summarising").done()
    WalkedJob(store, second).to("summarising").done(partial=True)
    theirs = ramify.submit("why?", tenant="acme")
    other = ramify.submit_many([{"question": "two?", "idempotency_key": "k2"}]).batch_id
    ramify.submit_many([f"later {n}?" for n in range(600)])

    def ids(**wanted: object) -> list[str]:
        return [job.job_id for job in ramify.jobs(5, **wanted)]  # type: ignore[arg-type]

    assert ids(state="done") == [second, first]
    assert (ids(state="partial"), ids(state="degraded")) == ([second], [first])
    assert ids(state=("partial", "degraded")) == [second, first]
    assert ids(state=["open", "partial"], batch=batch.batch_id) == [last, second]
    assert ids(batch=batch.batch_id) == [last, second, first]
    assert ids(batch=batch.batch_id, state="open") == [last]
    assert ids(batch=other) == [second], "a job that its line names"
    assert ids(tenant="acme") == [theirs]
    assert ids(degraded=True) == ids(degraded="out_of_time") == [first]
    assert ids(degraded="llm_unavailable") == []
    assert len(ids(degraded=False, state="queued")) == 5
    with pytest.raises(InputError, match="choose from queued, planning"):
        ids(state="finished")
    with pytest.raises(InputError, match="finished"):
        ids(state=["done", "finished"])
    with pytest.raises(NotFoundError):
        ids(batch="0" * 21)


def test_a_list_says_when_it_was_cut(ramify: Ramify, monkeypatch: pytest.MonkeyPatch) -> None:
    old = ramify.submit("why?", tenant="acme")
    for n in range(9):
        ramify.submit(f"later {n}?")
    assert not ramify.jobs(tenant="acme").cut
    monkeypatch.setattr(shared.jobs.job_list, "MOST_LOOKED_AT", 9)
    found = ramify.jobs(tenant="acme")
    assert (found, found.cut, found.looked_at) == ([], True, 0), "others are not counted"
    assert not ramify.jobs(9).cut
    monkeypatch.setattr(shared.jobs.job_list, "MOST_LOOKED_AT", 10)
    found = ramify.jobs(tenant="acme")
    assert ([job.job_id for job in found], found.cut) == ([old], False)
