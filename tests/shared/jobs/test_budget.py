"""Budgets on a real Redis and over real HTTP: each call is reserved before it is made, and none goes past it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import redis

from shared.errors import InputError, RamifyError
from shared.jobs import Job, JobReader, JobStore, new_id
from shared.jobs.budget import Ledger
from shared.jobs.keys import BatchKeys, JobKeys
from shared.models import JobRequest
from shared.models.cost import Budget
from shared.providers.encoders.base import Embedded
from shared.providers.encoders.endpoint import EndpointEncoder
from shared.providers.llm.client import ChatClient, spent
from shared.providers.metering import BudgetError, PaidUse, carried, metered, paid
from shared.providers.rerankers import reranker
from shared.settings import Settings, load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.ramify_client import hit
from tests.fakes.replies import Fault, Reply
from tests.fakes.walked_jobs import enter

PRICES = {
    "llm_input": {"fake": 1.0}, "llm_output": {"fake": 2.0}, "embedding": {"fake": 0.5}, "rerank": {"fake": 3.0},
}  # fmt: skip


@pytest.fixture
def settings(redis_url: str, server: FakeOpenAI) -> Settings:
    models = {"base_url": server.url, "model": "fake"}
    return load_settings(
        redis={"url": redis_url}, llm_base_url=server.url, llm_model="fake", llm_max_tokens=100, prices=PRICES,
        embedding={"provider": "endpoint", **models, "dim": 64}, rerank={"provider": "endpoint", **models},
    )  # fmt: skip


def job(store: JobStore, batch_id: str | None = None, **limits: float) -> Job:
    job_id = new_id()
    jobs = [(job_id, JobRequest.model_validate({"question": "why?", **limits}))]
    if batch_id:
        enter(store, batch_id, jobs)
    else:
        store.enqueue(jobs)
    found = store.job(job_id)
    assert found is not None
    return found


def spending(store: JobStore, of: Job):
    budget = JobReader(store.client).status(of.id).budget
    assert budget is not None
    return budget


@contextmanager
def charging(store: JobStore, settings: Settings, of: Job) -> Iterator[ChatClient]:
    """An LLM client whose calls go on the budgets of a job."""
    with ChatClient(settings) as client, metered(Ledger(store.client, settings).meter(of)):
        yield client


def embedded_by(settings: Settings, text: str) -> Embedded:
    encoder = EndpointEncoder(settings)
    try:
        return encoder.embed_queries([text])
    finally:
        encoder._client.close()


def asked(client: ChatClient, times: int = 1, prompt: str = "say something") -> list[str]:
    return [client.complete(prompt, timeout_s=10).text for _ in range(times)]


def test_given_three_calls_when_asked_by_sixteen_threads_then_three_are_made_and_the_others_refused(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    limited = job(store, max_calls=3)

    def ask(_: int) -> str:
        try:
            return asked(client)[0]
        except BudgetError as error:
            return str(error)

    with charging(store, settings, limited) as client, ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(carried(ask), range(16)))
    assert replies.count("budget max_calls = 3 is used up") == 13
    assert len(server.requests()) == 3
    assert spending(store, limited).calls == 3
    assert not any(b"hold:" in name for name in store.client.hkeys(JobKeys(limited.id).job)), "all are settled"


def test_given_a_server_that_fails_when_tried_again_then_every_try_counts(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    server.script("chat", Fault(500), Fault(500))
    limited = job(store, max_calls=2)
    with (
        charging(store, settings, limited) as client,
        pytest.raises(BudgetError, match="budget max_calls = 2 is used up") as caught,
    ):
        asked(client)
    assert spent(caught.value).calls == 2
    assert (len(server.requests()), spending(store, limited).calls) == (2, 2)


def test_given_no_calls_at_all_when_asked_then_nothing_reaches_the_server(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    with (
        charging(store, settings, job(store, max_calls=0)) as client,
        pytest.raises(BudgetError, match="budget max_calls = 0 allows none"),
    ):
        asked(client)
    assert server.requests() == []


def test_given_tokens_when_asked_then_the_longest_reply_is_reserved_and_the_real_one_counted(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    server.script("chat", Reply("short", tokens_in=6, tokens_out=4))
    limited = job(store, max_tokens=110)
    with charging(store, settings, limited) as client:
        asked(client)
        assert spending(store, limited).tokens == 10
        fault = r"budget max_tokens = 110 has 100 left, and this call may take 107"
        with pytest.raises(BudgetError, match=fault):
            asked(client)
    assert len(server.requests()) == 1


def test_given_a_server_that_reports_no_tokens_when_asked_then_an_estimate_counts(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    server.script("chat", Reply("a reply of some length", tokens_in=0, tokens_out=0))
    limited = job(store, max_tokens=1000)
    with charging(store, settings, limited) as client:
        asked(client)
    assert 8 <= spending(store, limited).tokens <= 20


def test_given_money_when_spent_on_llm_embedding_and_rerank_then_each_has_its_price(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    server.script("chat", Reply("reply", tokens_in=1000, tokens_out=500))
    limited, ranker = job(store, max_cost=1.0), reranker(settings)
    with charging(store, settings, limited) as client:
        asked(client)
        embedded = embedded_by(settings, "two words")
        ranker.rerank("what", [hit(1)], 10)
    ranker.close()
    expected = 1000 * 1.0 / 1e6 + 500 * 2.0 / 1e6 + embedded.tokens * 0.5 / 1e6 + 3.0 / 1000
    assert spending(store, limited).cost == pytest.approx(expected, abs=1e-9)


def test_given_little_money_when_everything_is_asked_then_each_part_falls_back_and_says_so(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    limited, ranker = job(store, max_cost=0.000_000_1), reranker(settings)
    with charging(store, settings, limited) as client:
        with pytest.raises(
            BudgetError, match=r"budget max_cost = 1e-07 has 1e-07 left, and this call may take 0\.0002"
        ):
            asked(client)
        with pytest.raises(BudgetError, match="max_cost"):
            embedded_by(settings, "two words")
        ranked = ranker.rerank("what", [hit(1)], 10)
    ranker.close()
    assert "max_cost" in ranked.warnings[0]
    assert server.requests("chat") == server.requests("embeddings") == server.requests("rerank") == []


def test_given_money_and_a_model_without_a_price_when_asked_then_the_sentence_names_the_setting(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    bare = settings.model_copy(update={"prices": load_settings().prices})
    with (
        charging(store, bare, job(store, max_cost=1)) as client,
        pytest.raises(BudgetError, match="the model 'fake' has no price: set"),
    ):
        asked(client)
    assert server.requests() == []


def test_given_a_batch_budget_when_its_jobs_spend_then_the_later_ones_are_refused(
    store: JobStore, settings: Settings, server: FakeOpenAI
) -> None:
    batch_id, ledger = new_id(), Ledger(store.client, settings)
    store.batches.open(batch_id, Budget(max_calls=2))
    jobs = [job(store, batch_id, max_calls=5) for _ in range(3)]
    with ChatClient(settings) as client:
        for one in jobs[:2]:
            with metered(ledger.meter(one)):
                asked(client)
        with metered(ledger.meter(jobs[2])), pytest.raises(BudgetError, match="the batch's budget max_calls = 2 is"):
            asked(client)
    assert spending(store, jobs[2]).calls == 0, "what the batch refused is given back to the job"
    batch = store.batches.status(batch_id).budget
    assert batch is not None
    assert (batch.max_calls, batch.calls) == (2, 2)


def test_given_a_batch_whose_time_is_over_when_asked_then_nothing_more_is_spent(
    store: JobStore, settings: Settings
) -> None:
    batch_id = new_id()
    store.batches.open(batch_id, Budget(max_seconds=60))
    one = job(store, batch_id)
    meter = Ledger(store.client, settings).meter(one)
    assert meter is not None
    meter.settle(meter.reserve(PaidUse(1)), PaidUse(1))
    store.client.hset(BatchKeys(batch_id).batch, "created_at", "1000")
    with pytest.raises(BudgetError, match="the batch's budget max_seconds = 60 is over"):
        meter.reserve(PaidUse(1))


def test_given_a_reservation_that_is_repeated_when_run_then_it_counts_once(store: JobStore) -> None:
    limited, scripts = job(store, max_calls=2), store._run
    key = [JobKeys(limited.id).job]
    for _ in range(3):
        assert scripts("reserve", key, [1, "one", 1, 50, 0, 0]) == []
    assert spending(store, limited).calls == 1
    assert [scripts("settle", key, ["one", 1, 7, 0]) for _ in range(2)] == [1, 0]
    assert spending(store, limited).tokens == 7


def test_given_a_worker_killed_in_a_call_when_its_step_runs_again_then_that_call_still_counts(
    store: JobStore, settings: Settings
) -> None:
    """Its server may have answered, and billed: the reservation stands at its most, nobody settles it."""
    limited, ledger = job(store, max_calls=2, max_tokens=1000), Ledger(store.client, settings)
    killed, again = ledger.meter(limited), ledger.meter(limited)
    assert killed is not None
    assert again is not None
    killed.reserve(PaidUse(1, 300))
    again.settle(again.reserve(PaidUse(1, 300)), PaidUse(1, 20))
    assert (spending(store, limited).calls, spending(store, limited).tokens) == (2, 320)
    with pytest.raises(BudgetError, match="budget max_calls = 2 is used up"):
        again.reserve(PaidUse(1, 1))


def test_given_a_job_that_is_gone_when_reserved_then_no_key_comes_to_life(store: JobStore) -> None:
    limited = job(store, max_calls=2)
    store.client.delete(JobKeys(limited.id).job)
    assert store._run("reserve", [JobKeys(limited.id).job], [1, "one", 1, 0, 0, 0]) == []
    assert store._run("settle", [JobKeys(limited.id).job], ["one", 1, 0, 0]) == 0
    assert not store.client.exists(JobKeys(limited.id).job)


def test_given_a_job_without_limits_when_its_step_runs_then_there_is_no_meter(
    store: JobStore, settings: Settings
) -> None:
    batch_id = new_id()
    store.batches.open(batch_id)
    one = job(store, batch_id)
    assert Ledger(store.client, settings).meter(one) is None
    assert JobReader(store.client).status(one.id).budget is None


def test_given_defaults_of_the_settings_when_a_job_names_a_limit_then_its_own_goes_before(
    client: redis.Redis, settings: Settings
) -> None:
    defaults = {"budget": load_settings(budget={"max_calls": 4, "max_seconds": 30}).budget}
    store = JobStore(client, settings.model_copy(update=defaults))
    one = job(store, max_calls=9)
    assert (one.request.max_calls, one.request.max_seconds) == (9, 30)
    assert one.deadline_s == 30
    assert (spending(store, one).max_calls, spending(store, one).max_seconds) == (9, 30)


def test_given_a_thread_without_a_meter_when_it_asks_then_its_own_job_is_not_charged(store: JobStore) -> None:
    """A pool's thread starts without a meter: `carried` is what takes it along."""
    seen: list[int] = []
    meter = Ledger(store.client, store.settings).meter(job(store, max_calls=0))
    with metered(meter):

        def call() -> None:
            with paid("llm", "fake") as one:
                try:
                    one.next_try()
                except BudgetError:
                    seen.append(1)

        for target in (call, carried(call)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert seen == [1]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_seconds": 0}, "max_seconds: 0 cannot be used: leaves no time to answer"),
        ({"max_calls": -1}, "max_calls: -1"),
        ({"max_calls": 1.5}, "max_calls: 1.5"),
        ({"max_tokens": "many"}, "max_tokens: 'many'"),
        ({"max_cost": float("nan")}, "max_cost: nan"),
        ({"max_cost": float("inf")}, "max_cost: inf"),
    ],
)
def test_given_a_budget_of_nonsense_when_read_then_one_sentence_names_the_limit(limits, said) -> None:
    from orchestrator.intake import as_budget, as_request

    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        as_request("why?", limits)
    with pytest.raises(InputError, match=said):
        as_budget(limits)


def test_given_money_without_prices_when_submitted_then_it_is_refused_with_the_setting_to_set(
    settings: Settings, client: redis.Redis
) -> None:
    from orchestrator.client import Ramify

    with Ramify(settings.model_copy(update={"prices": load_settings().prices})) as ramify:
        with pytest.raises(InputError, match=r"max_cost: 0.5 cannot be used: the model 'fake' has no price"):
            ramify.submit("why?", max_cost=0.5)
        with pytest.raises(InputError, match="prices"):
            ramify.open_batch({"max_cost": 1})
        with pytest.raises(RamifyError, match="batch budget max_seconds: 0"):
            ramify.open_batch({"max_seconds": 0})
    assert client.dbsize() == 0
