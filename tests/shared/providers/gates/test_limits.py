"""Rate limits and pauses over real HTTP and a real Redis: what several clients of one provider do together."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest
import redis
from pydantic import SecretStr

from shared.errors import TransientError
from shared.providers.gates import Gate, GateError
from shared.providers.gates.gate_store import GateStore
from shared.providers.http import JsonClient
from shared.settings.services import ProviderSettings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault, Hang, Reply
from tests.shared.providers.gates.calls import QUICK, Make, failure, opened, post, timed


@pytest.mark.parametrize("form", ["seconds", "date"])
@pytest.mark.parametrize("status", [429, 503])
def test_after_retry_after_none_of_four_clients_sends_before_that(
    server: FakeOpenAI, make: Make, form: str, status: int
) -> None:
    def wait() -> float | str:
        # a date has whole seconds: one to three seconds from now, of which the first two are certain
        return 2 if form == "seconds" else format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)

    times = timed(server, lambda n: Fault(status, retry_after=wait()) if n == 1 else Reply("fine"))
    first, *others = [make(attempts=2) for _ in range(4)]

    with ThreadPoolExecutor(16) as threads:
        calls = [threads.submit(post, first)]
        while not times:
            time.sleep(0.001)
        time.sleep(0.05)
        calls += [threads.submit(post, worker) for worker in [first, *others] * 4]
        assert sum(call.result() for call in calls) == 18

    assert len(times) == 18
    assert min(times[1:]) - times[0] >= 1.95
    assert max(times[1:]) - times[0] < 8


def test_given_retry_after_beyond_the_time_left_then_others_fail_at_once_and_do_not_send(
    server: FakeOpenAI, make: Make
) -> None:
    server.script("chat", Fault(429, retry_after=60))
    workers = [make(attempts=3) for _ in range(4)]
    failure(workers[0])
    began = time.monotonic()

    errors = [failure(workers[n % 4], timeout_s=5) for n in range(20)]

    assert time.monotonic() - began < 5, "each of the twenty has five seconds"
    assert {type(error) for error in errors} == {GateError}
    assert len({str(error) for error in errors}) == 1, "one warning in a job, not twenty"
    assert f"LLM server at {server.url.split('/')[2]} wants no request until" in str(errors[0])
    assert isinstance(errors[0], TransientError)
    assert 50 < (errors[0].retry_after or 0) <= 60.1
    assert len(server.requests()) == 1


@pytest.mark.parametrize("value", ["soon", "-5", "nan", "1e9", "", "Thu, 99 Foo 2026", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_given_a_429_with_nonsense_then_the_pause_is_short_and_for_all(
    server: FakeOpenAI, make: Make, value: str
) -> None:
    times = timed(server, lambda n: Fault(429, retry_after=value) if n == 1 else Reply("fine"))
    assert isinstance(failure(make()), TransientError)
    post(make())
    assert 0.09 <= times[1] - times[0] < 3


def test_given_429s_without_a_time_then_the_pauses_grow(server: FakeOpenAI, make: Make) -> None:
    times = timed(server, lambda n: Fault(429) if n <= 4 else Reply("fine"))
    workers = [make() for _ in range(2)]
    for n in range(4):
        failure(workers[n % 2])
    post(workers[0])
    gaps = [second - first for first, second in pairwise(times)]
    for gap, pause in zip(gaps, (0.1, 0.2, 0.4, 0.8), strict=True):
        assert pause - 0.01 <= gap < 1.5 * pause + 1.5


def test_given_a_retry_after_of_days_then_the_pause_has_its_cap(server: FakeOpenAI, make: Make) -> None:
    times = timed(server, lambda n: Fault(429, retry_after=999_999) if n == 1 else Reply("fine"))
    failure(make(longest_pause_s=0.5))
    post(make(longest_pause_s=0.5))
    assert 0.45 <= times[1] - times[0] < 4


def test_a_call_that_does_not_fit_into_the_rate_limit_fails_at_once_and_names_it(
    server: FakeOpenAI, make: Make
) -> None:
    workers = [make(llm={"requests_per_minute": 6, "burst": 2}) for _ in range(2)]
    assert [post(worker) for worker in workers] == [1, 1]
    began = time.monotonic()

    error = failure(workers[0], timeout_s=5)

    assert time.monotonic() - began < 4
    assert "gets no more than 6 requests a minute (providers.llm.requests_per_minute)" in str(error)
    assert "the next turn is in " in str(error)
    assert 5 < (error.retry_after or 0) <= 10.1
    assert len(server.requests()) == 2


def test_a_call_that_fits_waits_for_its_turn_and_its_time_out_holds_for_all_of_it(
    server: FakeOpenAI, make: Make
) -> None:
    times = timed(server, lambda n: Reply("fine") if n < 3 else Hang(60))
    worker = make(llm={"requests_per_minute": 120, "burst": 1})
    began = time.monotonic()
    post(worker)
    post(worker)
    assert 0.45 <= times[1] - times[0] < 3
    failure(worker, timeout_s=1.0)
    assert time.monotonic() - began < 5


def test_two_kinds_at_one_host_have_gates_of_their_own(server: FakeOpenAI, make: Make, client: redis.Redis) -> None:
    opened(server, make)
    store = GateStore(client)
    gate = Gate("rerank", server.url, ProviderSettings.model_validate(QUICK), lambda: store)
    with JsonClient(server.url, SecretStr(""), gate, 1) as other:
        assert other.post("/rerank", {"model": "m", "query": "a", "documents": ["a"]}, 5).calls == 1
