"""Gates of several processes, and of one that loses its Redis."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import redis
from pydantic import SecretStr

from shared.connections.connect import connect
from shared.errors import RamifyError
from shared.providers.gates import Gate, share
from shared.providers.gates.gate_store import GateStore, GateVerdict
from shared.providers.http import JsonClient
from shared.providers.llm.client import ChatClient
from shared.settings import load_settings
from shared.settings.services import ProviderSettings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault, Reply, Step
from tests.support.forks import FORKS
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).parents[4]


def work(pipe: Connection, options: dict[str, Any], seconds: float) -> None:
    """A worker of three threads: calls as fast as it may for some seconds, and tells how its calls ended."""
    settings = load_settings(**options)
    share(settings)
    with closing(ChatClient(settings)) as client:
        pipe.send("ready")
        pipe.recv()
        end = time.monotonic() + seconds

        def calls(_: int) -> Counter[str]:
            ends = Counter[str]()
            while (left := end - time.monotonic()) > 0:
                try:
                    client.complete("x", timeout_s=left)
                    ends["done"] += 1
                except RamifyError as error:
                    ends[type(error).__name__] += 1
                    time.sleep(0.002)
            return ends

        with ThreadPoolExecutor(3) as pool:
            pipe.send(sum(pool.map(calls, range(3)), Counter[str]()))


def run_workers(server: FakeOpenAI, redis_url: str, seconds: float, **providers: Any) -> list[Counter[str]]:
    """Three processes with three threads each, let go at the same time; how their calls ended."""
    options = {
        "llm_base_url": server.url, "llm_model": "m", "llm_attempts": 1, "redis": {"url": redis_url},
        "providers": providers,
    }  # fmt: skip
    ends = [FORKS.Pipe() for _ in range(3)]
    workers = [FORKS.Process(target=work, args=(theirs, options, seconds), daemon=True) for _, theirs in ends]
    for worker in workers:
        worker.start()
    try:
        for action in (lambda pipe: pipe.recv(), lambda pipe: pipe.send("go")):
            for pipe, _ in ends:
                action(pipe)
        return [pipe.recv() for pipe, _ in ends]
    finally:
        for worker, pipes in zip(workers, ends, strict=True):
            worker.kill()
            worker.join()
            worker.close()
            for pipe in pipes:
                pipe.close()


def arrivals(server: FakeOpenAI, step: Step) -> list[float]:
    times: list[float] = []

    def answer(_: dict[str, Any]) -> Step:
        times.append(time.monotonic())
        return step

    server.handle("chat", answer)
    return times


@pytest.mark.usefixtures("client")
def test_processes_together_send_no_more_than_the_limit_and_the_burst(server: FakeOpenAI, redis_url: str) -> None:
    times, per_second, burst = arrivals(server, Reply("fine")), 10, 5

    ends = run_workers(server, redis_url, 4.0, llm={"requests_per_minute": per_second * 60, "burst": burst})

    done = sum(end.get("done", 0) for end in ends)
    assert done <= len(times) <= done + 9, "the time of some was up while they were under way"
    for first, start in enumerate(times):
        for last in range(first, len(times)):
            # 0.5 s: a request may have stayed on its way for so long when this machine is busy
            most = burst + per_second * (times[last] - start + 0.5)
            assert last - first + 1 <= most, f"{last - first + 1} requests in {times[last] - start:.2f} s"
    assert len(times) >= burst + per_second * 4 * 0.7, "the limit is used, not only kept"
    assert all(end.get("done", 0) >= 5 for end in ends), "no process is left out"


@pytest.mark.usefixtures("client")
def test_a_dead_server_gets_a_few_probes_from_all_processes_together(server: FakeOpenAI, redis_url: str) -> None:
    times = arrivals(server, Fault(500))

    ends = run_workers(server, redis_url, 3.0, breaker={"failures": 3, "open_s": 0.5, "longest_open_s": 0.5})

    refused = sum(end.get("GateError", 0) for end in ends)
    assert refused > 300, "calls end in milliseconds"
    # 3 to open it, up to 8 more that were under way then, and one probe each half second
    assert 6 <= len(times) <= 3 + 8 + 7
    probes = [time for time in times if time > times[0] + 0.45]
    assert all(later - earlier > 0.4 for earlier, later in pairwise(probes)), "one at a time"


class Lost:
    """A Redis that is away."""

    def __init__(self, raised: type[Exception] = redis.ConnectionError, after_s: float = 0) -> None:
        self.asked, self._raised, self._after_s = 0, raised, after_s

    def register_script(self, _: str) -> Callable[..., Any]:
        return self._run

    def _run(self, **_: Any) -> Any:
        self.asked += 1
        time.sleep(self._after_s)
        raise self._raised("gone")


def client_on(server: FakeOpenAI, redis_client: Any, **providers: Any) -> JsonClient:
    store = GateStore(redis_client) if redis_client else None
    gate = Gate("llm", server.url, ProviderSettings.model_validate(providers), lambda: store)
    return JsonClient(server.url, SecretStr(""), gate, 1)


def ask(client: JsonClient, timeout_s: float = 5) -> str:
    try:
        client.post("/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "x"}]}, timeout_s)
    except RamifyError as error:
        return type(error).__name__
    return "done"


def test_without_redis_calls_go_ungated_and_the_log_says_so_once(
    server: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    lost = Lost()
    with client_on(server, lost, llm={"requests_per_minute": 60, "burst": 3}) as client:
        assert [ask(client, 0.3) for _ in range(5)] == ["done"] * 5
        server.handle("chat", lambda _: Fault(500))
        assert [ask(client, 0.3) for _ in range(5)] == ["UnreachableError"] * 5, "no breaker opens"
    assert lost.asked == 1, "it is left alone, and nobody waits for its time-out again"
    [line] = [record.getMessage() for record in caplog.records if record.name == "ramify.gates"]
    assert line == "Redis does not hold the rate limits and circuit breakers (ConnectionError): calls go without them"


@pytest.mark.parametrize(
    "raised", [redis.TimeoutError, redis.ResponseError, redis.exceptions.BusyLoadingError, OSError]
)
def test_whatever_redis_says_no_call_fails_for_it(server: FakeOpenAI, raised: type[Exception]) -> None:
    with client_on(server, Lost(raised)) as client:
        assert ask(client) == "done"


def test_a_redis_that_is_killed_and_comes_back_costs_no_call(
    server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ramify.gates")
    monkeypatch.setattr("shared.providers.gates.gate_store._REDIS_PAUSE_S", 0.2)
    with (
        RedisServer(tmp_path) as own,
        connect(load_settings(redis={"url": own.url}), retries=1, timeout_s=1) as shared,  # as `share` makes it
        client_on(server, shared) as client,
    ):
        ends = [ask(client)]
        own.kill()
        began = time.monotonic()
        ends += [ask(client) for _ in range(50)]
        assert time.monotonic() - began < 10
        own.start()
        time.sleep(0.25)
        ends += [ask(client) for _ in range(5)]
    assert ends == ["done"] * 56
    told = [record.getMessage().split(" ")[1] for record in caplog.records if record.name == "ramify.gates"]
    assert told == ["does", "holds"], "once that it is away, once that it is back"


def test_a_redis_that_hangs_delays_one_call_and_not_the_others(server: FakeOpenAI) -> None:
    hanging = Lost(redis.TimeoutError, after_s=0.5)
    with client_on(server, hanging) as client:
        began = time.monotonic()
        assert [ask(client) for _ in range(20)] == ["done"] * 20
    assert hanging.asked == 1
    assert time.monotonic() - began < 5


def test_a_process_that_was_told_of_no_redis_is_ungated_and_warns_of_a_limit_that_does_not_hold(
    server: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    """As `ramify eval --direct`."""
    with client_on(server, None, breaker={"failures": 2}, llm={"requests_per_minute": 60, "burst": 1}) as client:
        assert [ask(client, 0.3) for _ in range(4)] == ["done"] * 4
        server.handle("chat", lambda _: Fault(500))
        assert [ask(client) for _ in range(4)] == ["UnreachableError"] * 4
    [line] = [record.getMessage() for record in caplog.records if record.name == "ramify.gates"]
    assert "providers.llm.requests_per_minute does not hold in this process" in line


def test_an_answer_names_only_verdicts_that_are_known() -> None:
    """The scripts speak in these words."""
    source = (ROOT / "shared/providers/gates/lua/acquire.lua").read_text(encoding="utf-8")
    assert all(f"{{'{verdict}'" in source for verdict in GateVerdict)
