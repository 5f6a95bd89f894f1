"""Gates over real HTTP and a real Redis: what several clients of one provider do together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import pytest
import redis
from pydantic import SecretStr

from shared.budget import BudgetError, Meter, Use, metered
from shared.errors import PermanentError, RamifyError, ReplyError, TransientError
from shared.gates import Gate, GateError, UnreachableError, UnsureError
from shared.gates.shared_board import SharedBoard, key_of
from shared.http_client import JsonClient, calls_made
from shared.llm.client import ChatClient
from shared.settings import load_settings
from shared.settings.providers import Providers
from tests.fakes.openai_server import CutOff, FakeOpenAI, Fault, Hang, Malformed, Reply, Slow, Step

KEY, PROMPT = "sk-secret-0123456789", "the private words of the prompt"
BODY = {"model": "m", "messages": [{"role": "user", "content": PROMPT}]}
QUICK = {"breaker": {"failures": 3, "open_s": 0.4, "longest_open_s": 1.5}, "pause_s": 0.1}
Make = Callable[..., JsonClient]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture
def make(server: FakeOpenAI, client: redis.Redis) -> Iterator[Make]:
    """Clients as those of several workers: each with a gate of its own, over one Redis."""
    with ExitStack() as stack:

        def build(attempts: int = 1, attempt_s: float = 60.0, url: str = server.url, **providers: Any) -> JsonClient:
            board = SharedBoard(client)
            gate = Gate("llm", url, Providers.model_validate({**QUICK, **providers}), lambda: board)
            made = JsonClient(url, SecretStr(KEY), "LLM server", attempts, attempt_s=attempt_s, gate=gate)
            return stack.enter_context(made)

        yield build


def post(client: JsonClient, timeout_s: float = 10.0, **more: Any) -> int:
    """One call; how many HTTP calls it took."""
    return client.post("/chat/completions", BODY, timeout_s, **more).calls


def failure(client: JsonClient, timeout_s: float = 10.0, **more: Any) -> RamifyError:
    with pytest.raises(RamifyError) as caught:
        post(client, timeout_s, **more)
    return caught.value


def timed(server: FakeOpenAI, step: Callable[[int], Step]) -> list[float]:
    """When requests arrive; the answer to request n is `step(n)`."""
    times: list[float] = []

    def answer(_: dict[str, Any]) -> Step:
        times.append(time.monotonic())
        return step(len(times))

    server.handle("chat", answer)
    return times


def opened(server: FakeOpenAI, make: Make, step: Step | None = None, **providers: Any) -> JsonClient:
    """A client whose breaker has just opened."""
    server.handle("chat", lambda _: step or Fault(500))
    worker = make(**providers)
    for _ in range(3):
        assert isinstance(failure(worker), UnreachableError)
    return worker


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
    assert max(times[1:]) - times[0] < 4.5


def test_given_retry_after_beyond_the_time_left_then_others_fail_at_once_and_do_not_send(
    server: FakeOpenAI, make: Make
) -> None:
    server.script("chat", Fault(429, retry_after=60))
    workers = [make(attempts=3) for _ in range(4)]
    failure(workers[0])
    began = time.monotonic()

    errors = [failure(workers[n % 4], timeout_s=5) for n in range(20)]

    assert time.monotonic() - began < 1
    assert {type(error) for error in errors} == {GateError}
    assert len({str(error) for error in errors}) == 1, "one warning in a job, not twenty"
    assert f"LLM server at {server.url.split('/')[2]} wants no request until" in str(errors[0])
    assert isinstance(errors[0], TransientError)
    assert 55 < (errors[0].retry_after or 0) <= 60
    assert len(server.requests()) == 1


@pytest.mark.parametrize("value", ["soon", "-5", "nan", "1e9", "", "Thu, 99 Foo 2026", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_given_a_429_with_nonsense_then_the_pause_is_short_and_for_all(
    server: FakeOpenAI, make: Make, value: str
) -> None:
    times = timed(server, lambda n: Fault(429, retry_after=value) if n == 1 else Reply("fine"))
    assert isinstance(failure(make()), TransientError)
    post(make())
    assert 0.09 <= times[1] - times[0] < 1


def test_given_429s_without_a_time_then_the_pauses_grow(server: FakeOpenAI, make: Make) -> None:
    times = timed(server, lambda n: Fault(429) if n <= 4 else Reply("fine"))
    workers = [make() for _ in range(2)]
    for n in range(4):
        failure(workers[n % 2])
    post(workers[0])
    gaps = [second - first for first, second in pairwise(times)]
    for gap, pause in zip(gaps, (0.1, 0.2, 0.4, 0.8), strict=True):
        assert pause - 0.01 <= gap < 1.5 * pause + 0.1


def test_given_a_retry_after_of_days_then_the_pause_has_its_cap(server: FakeOpenAI, make: Make) -> None:
    times = timed(server, lambda n: Fault(429, retry_after=999_999) if n == 1 else Reply("fine"))
    failure(make(longest_pause_s=0.5))
    post(make(longest_pause_s=0.5))
    assert 0.45 <= times[1] - times[0] < 1.5


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
    assert seconds < 1, "a hundredth of a second each; three tries with backoff would take 60"
    assert {type(error) for error in errors} == {GateError}
    assert {calls_made(error) for error in errors} == {0}
    [sentence] = {str(error) for error in errors}
    assert "is left alone for 30 s, until" in sentence
    assert "after 3 failures in a row, the last: it answered 500 (fake): it is busy" in sentence


@pytest.mark.parametrize("step", [Fault(500), Fault(503), CutOff(), CutOff(0), Hang(0)])
def test_each_way_to_fail_opens_it_and_one_probe_closes_it_again(server: FakeOpenAI, make: Make, step: Step) -> None:
    worker = opened(server, make, step)
    assert isinstance(failure(worker), GateError)
    server.handle("chat", lambda _: Reply("fine"))
    sent = len(server.requests())
    time.sleep(0.45)

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
    time.sleep(0.45)

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
    assert spans == ["0.8", "1.5", "1.5"]


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
    time.sleep(0.45)
    assert isinstance(failure(worker), PermanentError)
    assert isinstance(failure(worker), PermanentError)


def test_only_time_outs_that_say_something_of_the_server_open_it(server: FakeOpenAI, make: Make) -> None:
    server.handle("chat", lambda _: Hang(60))
    hurried = make(attempt_s=60)
    assert {type(failure(hurried, timeout_s=0.1)) for _ in range(6)} == {UnsureError}, "the jobs had no time"

    patient = make(attempt_s=60, breaker={**QUICK["breaker"], "slow_s": 0.2})
    assert [type(failure(patient, timeout_s=0.25)) for _ in range(4)] == [UnreachableError] * 3 + [GateError]


def test_the_servers_own_time_out_opens_it_however_short(server: FakeOpenAI, make: Make) -> None:
    server.handle("chat", lambda _: Hang(60))
    worker = make(attempt_s=0.2)
    assert [type(failure(worker)) for _ in range(4)] == [UnreachableError] * 3 + [GateError]


def test_a_probe_whose_own_time_was_too_short_leaves_the_next_one_to_probe(server: FakeOpenAI, make: Make) -> None:
    worker = opened(server, make)
    server.handle("chat", lambda _: Slow(0.3, Reply("fine")))
    time.sleep(0.45)
    assert isinstance(failure(worker, timeout_s=0.1), UnsureError)
    assert post(make()) == 1


def test_a_call_that_does_not_fit_into_the_rate_limit_fails_at_once_and_names_it(
    server: FakeOpenAI, make: Make
) -> None:
    workers = [make(llm={"requests_per_minute": 6, "burst": 2}) for _ in range(2)]
    assert [post(worker) for worker in workers] == [1, 1]
    began = time.monotonic()

    error = failure(workers[0], timeout_s=5)

    assert time.monotonic() - began < 0.5
    assert "gets no more than 6 requests a minute (providers.llm.requests_per_minute)" in str(error)
    assert "the next turn is in 10 s" in str(error)
    assert 9 < (error.retry_after or 0) <= 10
    assert len(server.requests()) == 2


def test_a_call_that_fits_waits_for_its_turn_and_its_time_out_holds_for_all_of_it(
    server: FakeOpenAI, make: Make
) -> None:
    times = timed(server, lambda n: Reply("fine") if n < 3 else Hang(60))
    worker = make(llm={"requests_per_minute": 120, "burst": 1})
    began = time.monotonic()
    post(worker)
    post(worker)
    assert 0.45 <= times[1] - times[0] < 0.9
    failure(worker, timeout_s=1.0)
    assert time.monotonic() - began < 2.5


def test_a_refused_call_is_not_counted_and_a_budget_that_refuses_does_not_hold_the_probe(
    server: FakeOpenAI, make: Make
) -> None:
    made: list[int] = []
    worker = opened(server, make)
    failure(worker, before=lambda: made.append(1))
    assert made == [], "the hook is for calls that are made"
    server.handle("chat", lambda _: Reply("fine"))
    time.sleep(0.45)

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

        def reserve(self, hold: str, use: Use) -> None:
            server.script("chat", Fault(500))

        def settle(self, hold: str, use: Use) -> None:
            self.settled.append(use.calls)

    board = SharedBoard(client)
    monkeypatch.setattr("shared.gates.process._board", board)
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

    assert 0.3 < time.monotonic() - began < 3
    opened(server, make)
    assert isinstance(failure(make(), timeout_s=0.1, patient=True), GateError)


def test_two_kinds_at_one_host_have_gates_of_their_own(server: FakeOpenAI, make: Make, client: redis.Redis) -> None:
    opened(server, make)
    board = SharedBoard(client)
    gate = Gate("rerank", server.url, Providers.model_validate(QUICK), lambda: board)
    with JsonClient(server.url, SecretStr(""), "rerank server", 1, gate=gate) as other:
        assert other.post("/rerank", {"model": "m", "query": "a", "documents": ["a"]}, 5).calls == 1


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
