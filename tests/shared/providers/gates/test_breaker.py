"""The circuit breaker over real HTTP and a real Redis: when it opens, who probes, when it closes."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from shared.errors import PermanentError, RamifyError, ReplyError, TransientError
from shared.providers.gates import GateError, UnreachableError, UnsureError
from shared.providers.gates.gate_store import GateStore, key_of
from shared.providers.llm.client import ChatClient
from shared.providers.metering import BudgetError, Meter, PaidUse, metered
from shared.settings import load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import CutOff, Fault, Hang, Malformed, Reply, Slow, Step
from tests.shared.providers.gates.calls import KEY, PROMPT, QUICK, Make, failure, opened, post, timed


def test_while_the_breaker_is_open_100_calls_cost_two_connections_and_milliseconds(
    server: FakeOpenAI, make: Make
) -> None:
    server.handle("chat", lambda _: Fault(500))
    workers = [make(attempts=3, breaker={"failures": 3, "open_s": 30}) for _ in range(4)]
    failure(workers[0])
    sent, connected, began = len(server.requests()), server.connections, time.monotonic()

    with ThreadPoolExecutor(8) as threads:
        errors = list(threads.map(lambda n: failure(workers[n % 4]), range(100)))

    seconds = time.monotonic() - began
    assert len(server.requests()) == sent == 3
    assert server.connections - connected <= 2
    assert seconds < 5, "three tries with backoff would take 60"
    assert {type(error) for error in errors} == {GateError}
    assert {error.calls for error in errors} == {0}
    [sentence] = {str(error) for error in errors}
    assert "is left alone for 30 s, until" in sentence
    assert "after 3 failures in a row, the last: it answered 500 (fake): it is busy" in sentence


@pytest.mark.parametrize("step", [Fault(500), Fault(503), CutOff(), CutOff(0), Hang(0)])
def test_each_way_to_fail_opens_it_and_one_probe_closes_it_again(server: FakeOpenAI, make: Make, step: Step) -> None:
    worker = opened(server, make, step)
    assert isinstance(failure(worker), GateError)
    server.handle("chat", lambda _: Reply("fine"))
    sent = len(server.requests())
    time.sleep(1.05)

    assert [post(worker), post(make()), post(worker)] == [1, 1, 1]
    assert len(server.requests()) == sent + 3


def test_nothing_that_listens_opens_it_too(make: Make) -> None:
    with FakeOpenAI() as gone:
        pass
    worker = make(url=gone.url)
    for _ in range(3):
        assert "cannot be reached" in str(failure(worker))
    assert "the last: it cannot be reached" in str(failure(worker))


def test_half_open_exactly_one_of_many_calls_probes(server: FakeOpenAI, make: Make) -> None:
    opened(server, make)
    times = timed(server, lambda _: Slow(0.4, Reply("fine")))
    workers = [make() for _ in range(4)]
    time.sleep(1.05)

    def attempt(n: int) -> str:
        try:
            return str(post(workers[n % 4]))
        except GateError as error:
            return str(error)

    with ThreadPoolExecutor(12) as threads:
        outcomes = list(threads.map(attempt, range(12)))

    assert len(times) == 1
    assert outcomes.count("1") == 1
    assert sum("one call tries it again" in outcome for outcome in outcomes) == 11
    assert post(workers[2]) == 1


def test_a_probe_that_fails_leaves_it_alone_for_longer(server: FakeOpenAI, make: Make) -> None:
    worker = opened(server, make)
    spans = []
    for _ in range(3):
        time.sleep(failure(worker).retry_after + 0.05)
        assert isinstance(failure(worker), UnreachableError)
        spans.append(str(failure(worker)).split("left alone for ")[1].split(" s")[0])
    assert spans == ["2", "3", "3"]


@pytest.mark.parametrize(
    ("step", "kind"), [(Fault(401), PermanentError), (Fault(400), PermanentError), (Malformed(), ReplyError)]
)
def test_errors_that_will_not_pass_never_open_it(
    server: FakeOpenAI, make: Make, step: Step, kind: type[RamifyError]
) -> None:
    server.handle("chat", lambda _: step)
    worker = make()
    assert {type(failure(worker)) for _ in range(8)} == {kind}
    assert len(server.requests()) == 8


def test_an_error_that_will_not_pass_closes_it_for_the_server_answers(server: FakeOpenAI, make: Make) -> None:
    worker = opened(server, make)
    server.handle("chat", lambda _: Fault(401))
    time.sleep(1.05)
    assert isinstance(failure(worker), PermanentError)
    assert isinstance(failure(worker), PermanentError)


def test_only_time_outs_that_say_something_of_the_server_open_it(server: FakeOpenAI, make: Make) -> None:
    server.handle("chat", lambda _: Hang(60))
    hurried = make(attempt_s=60)
    # Each has more time than the one before: with less it would not be sent, after one that was cut off.
    assert {type(failure(hurried, timeout_s=0.1 + n / 50)) for n in range(6)} == {UnsureError}, "the jobs had no time"

    patient = make(attempt_s=60, breaker={**QUICK["breaker"], "slow_s": 0.2})
    failures = [type(failure(patient, timeout_s=0.25 + n / 50)) for n in range(4)]
    assert failures == [UnreachableError] * 3 + [GateError]


def test_the_servers_own_time_out_opens_it_however_short(server: FakeOpenAI, make: Make) -> None:
    server.handle("chat", lambda _: Hang(60))
    worker = make(attempt_s=0.2)
    assert [type(failure(worker)) for _ in range(4)] == [UnreachableError] * 3 + [GateError]


def test_a_probe_whose_own_time_was_too_short_leaves_the_next_one_to_probe(server: FakeOpenAI, make: Make) -> None:
    worker = opened(server, make)
    server.handle("chat", lambda _: Slow(0.3, Reply("fine")))
    time.sleep(1.05)
    assert isinstance(failure(worker, timeout_s=0.1), UnsureError)
    assert post(make()) == 1


def test_a_refused_call_is_not_counted_and_a_budget_that_refuses_does_not_hold_the_probe(
    server: FakeOpenAI, make: Make
) -> None:
    made: list[int] = []
    worker = opened(server, make)
    failure(worker, before=lambda: made.append(1))
    assert made == [], "the hook is for calls that are made"
    server.handle("chat", lambda _: Reply("fine"))
    time.sleep(1.05)

    def refuse() -> None:
        raise BudgetError("used up")

    assert isinstance(failure(worker, before=refuse), BudgetError)
    assert post(make(), before=lambda: made.append(1)) == 1
    assert made == [1]


def test_a_budget_counts_the_calls_that_were_made_and_not_those_that_were_refused(
    server: FakeOpenAI, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Account:
        of, counts_money = "", False
        settled: list[int] = []  # noqa: RUF012 - one class per test

        def reserve(self, hold: str, use: PaidUse) -> None:
            server.script("chat", Fault(500))

        def settle(self, hold: str, use: PaidUse) -> None:
            self.settled.append(use.calls)

    store = GateStore(client)
    monkeypatch.setattr("shared.providers.gates.gate._process_store", store)
    settings = load_settings(llm_base_url=server.url, llm_model="m", llm_attempts=3, providers=QUICK)
    with ChatClient(settings) as llm, metered(Meter([Account()], settings.prices)):
        for _ in range(5):
            with pytest.raises(TransientError):
                llm.complete(PROMPT, timeout_s=10)
    assert len(server.requests()) == 3
    assert Account.settled == [1, 1, 1], "failed calls count, refused ones do not"


def test_a_patient_call_waits_for_a_server_that_comes_back(server: FakeOpenAI, make: Make) -> None:
    opened(server, make)
    server.handle("chat", lambda _: Reply("fine"))
    began = time.monotonic()

    with ThreadPoolExecutor(6) as threads:
        workers = [make() for _ in range(6)]
        assert list(threads.map(lambda worker: post(worker, patient=True), workers)) == [1] * 6

    assert 0.7 < time.monotonic() - began < 8
    opened(server, make)
    assert isinstance(failure(make(), timeout_s=0.1, patient=True), GateError)


def test_neither_key_nor_prompt_reach_redis_or_the_log_and_an_opening_is_logged_once(
    server: FakeOpenAI, make: Make, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = server.url.replace("://", "://user:pass-word@")
    server.handle("chat", lambda _: Fault(500, message=f"{PROMPT} {KEY}"))
    worker = make(url=url)
    for _ in range(6):
        failure(worker)
    state = str(client.hgetall(key_of(f"llm:{server.url.split('/')[2]}")))
    assert "answered 500" in state
    for secret in (KEY, PROMPT, "pass-word"):
        assert secret not in state + caplog.text
    [line] = [record for record in caplog.records if record.name == "ramify.gates"]
    assert line.levelno == logging.WARNING
    assert "is left alone for a while: it answered 500" in line.getMessage()
