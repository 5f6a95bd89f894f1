"""What `ramify doctor` says of the gates, read from a real Redis."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import redis

from orchestrator.local import checks_stack, doctor
from shared.providers.gates.gate_store import Admission, CallOutcome, CallReport, GateStore, key_of, limits_of
from shared.providers.gates.state import providers, read_gates
from shared.settings import Settings, load_settings

URL = "http://user:pass-word@127.0.0.1:8000/v1"
NAME = "llm:127.0.0.1:8000"


def configured(redis_url: str, **more: Any) -> Settings:
    return load_settings(redis={"url": redis_url}, llm_base_url=URL, llm_model="m", **more)


def checked(settings: Settings) -> Any:
    [check] = checks_stack.gates(settings, settings)
    return check


class LlmGate:
    """The gate of the settings' LLM."""

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        self._store, self._limits = GateStore(client), limits_of(settings.providers, settings.providers.llm)

    def enter(self, caller: str = "a") -> None:
        self._store.acquire(NAME, self._limits, Admission(caller, 1000, 0))

    def leave(self, outcome: CallOutcome, pause: float = 0) -> None:
        self._store.release(NAME, self._limits, CallReport(outcome, "a", pause, "answered 500"))


def test_a_quiet_gate_is_fine_and_shows_its_limit(client: redis.Redis, redis_url: str) -> None:
    settings = configured(redis_url, providers={"llm": {"requests_per_minute": 60, "burst": 4}})
    assert checked(settings).detail == (
        "LLM server at 127.0.0.1:8000: calls go; 4 requests may go at once, of 60 a minute"
    )
    gate = LlmGate(client, settings)
    gate.enter()
    gate.enter()
    assert "; 2 requests may go at once" in checked(settings).detail
    gate.leave(CallOutcome.FAILED)
    check = checked(settings)
    assert check.ok
    assert "calls go, 1 failure in a row, the last: it answered 500" in check.detail


def test_an_open_breaker_is_a_fault_with_its_times_and_its_reason(client: redis.Redis, redis_url: str) -> None:
    settings = configured(redis_url, providers={"breaker": {"failures": 2, "open_s": 0.2}})
    gate = LlmGate(client, settings)
    gate.leave(CallOutcome.FAILED)
    gate.leave(CallOutcome.FAILED)

    check = checked(settings)
    assert check.ok is False
    assert check.name == "llm gate"
    assert "is left alone since" in check.detail
    assert "after 2 failures in a row, the last: it answered 500" in check.detail
    assert "UTC" in check.detail
    assert "pass-word" not in str(check)
    [state] = read_gates(client, settings)
    assert state.until - state.since == pytest.approx(0.2, abs=0.01)
    assert abs(state.since - time.time()) < 5

    time.sleep(0.25)
    assert "the next call tries it" in checked(settings).detail
    gate.leave(CallOutcome.ANSWERED)
    assert checked(settings).ok


def test_a_pause_is_shown_with_its_end(client: redis.Redis, redis_url: str) -> None:
    settings = configured(redis_url)
    LlmGate(client, settings).leave(CallOutcome.BUSY, pause=30_000)
    check = checked(settings)
    assert check.ok is None
    assert "wants no request before" in check.detail
    assert check.fix == "set providers.llm.requests_per_minute"


def test_every_provider_that_the_settings_name_has_a_line(client: redis.Redis, redis_url: str) -> None:
    settings = configured(
        redis_url,
        embedding={"provider": "endpoint", "base_url": "https://e.example/v1", "model": "m"},
        rerank={"provider": "endpoint", "base_url": "http://[::1]:8002/v1", "model": "m"},
        store={"kind": "server", "url": "http://q.example:6333"},
    )
    assert [f"{kind}:{host}" for kind, host in providers(settings)] == [
        NAME, "embedding:e.example", "rerank:[::1]:8002", "qdrant:q.example:6333",
    ]  # fmt: skip
    names = [check.name for check in checks_stack.gates(settings, settings)]
    assert names == ["llm gate", "embedding gate", "rerank gate", "qdrant gate"]


@pytest.mark.parametrize("value", ["nonsense", "1e999", "-3", "nan", "9" * 60])
def test_nonsense_in_redis_is_shown_and_breaks_nothing(client: redis.Redis, redis_url: str, value: str) -> None:
    settings = configured(redis_url, providers={"llm": {"requests_per_minute": 60}})
    client.hset(key_of(NAME), mapping=dict.fromkeys(("tat", "open_until", "opened_at", "pause_until", "fails"), value))
    assert checked(settings).name == "llm gate"


def test_doctor_shows_gates_only_where_servers_are_named(redis_url: str, tmp_path: Path) -> None:
    bare = load_settings(data_dir=tmp_path, redis={"url": redis_url})
    assert checks_stack.gates(bare, bare) == ()
    assert [check.detail for check in checks_stack.gates(configured(redis_url), None)] == ["not running"]
    gone = configured("redis://127.0.0.1:9/0", data_dir=tmp_path)
    assert checked(gone).detail == "cannot be read from Redis (ConnectionError)"


def test_the_whole_doctor_has_the_line(client: redis.Redis, redis_url: str, tmp_path: Path) -> None:
    settings = configured(redis_url, data_dir=tmp_path)
    assert "llm gate" in [check.name for check in doctor.examine(settings)]
