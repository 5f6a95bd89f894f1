"""The reaper's loop: it goes by the monotonic clock, runs in ops workers only, and no error ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError

from orchestrator.reaper.loop import EVERY_S, PeriodicLoop
from tests.support.waiting import until


class Looks:
    """Counts looks, and raises what it is told to."""

    def __init__(self) -> None:
        self.at: list[float] = []
        self.raised: Exception | None = None

    def __call__(self) -> None:
        self.at.append(time.monotonic())
        if self.raised:
            raise self.raised


@pytest.fixture
def looks() -> Looks:
    return Looks()


@pytest.fixture
def loop(looks: Looks) -> Iterator[PeriodicLoop]:
    loop = PeriodicLoop("reaper", looks, every_s=0.1)
    yield loop
    loop.stop(5)


def test_it_looks_at_once_and_then_at_its_pace(looks: Looks, loop: PeriodicLoop) -> None:
    assert EVERY_S == 2.0
    loop.start()
    loop.start()
    until(lambda: len(looks.at) == 5)
    assert looks.at[4] - looks.at[0] >= 4 * 0.075, "one thread, and no look before its time"


def test_its_looks_are_not_evenly_apart(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    """given workers that ask once a second / when a message is sent again and again / then not always to the same."""
    draws = iter([0.75, 1.25] * 50)
    monkeypatch.setattr("orchestrator.reaper.loop.random.uniform", lambda low, high: min(max(next(draws), low), high))
    loop = PeriodicLoop("reaper", looks, every_s=0.4)
    loop.start()
    until(lambda: len(looks.at) == 3)
    loop.stop(5)
    short, long = (after - before for before, after in pairwise(looks.at))
    assert 0.29 < short < long - 0.1


@pytest.mark.parametrize("hours", [-1, 1, -10_000])
def test_a_wall_clock_that_is_set_changes_nothing(
    looks: Looks, loop: PeriodicLoop, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.start()
    until(lambda: len(looks.at) >= 1)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + hours * 3600)
    seen = len(looks.at)
    until(lambda: len(looks.at) >= seen + 3)
    assert looks.at[-1] - looks.at[seen] >= 2 * 0.075


@pytest.mark.parametrize(
    "error", [OperationalError("gone"), ConnectionResetError("gone"), RedisConnectionError("gone")]
)
def test_a_redis_that_is_away_ends_nothing_and_is_told_once(
    looks: Looks, loop: PeriodicLoop, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    looks.raised = error
    loop.start()
    until(lambda: len(looks.at) >= 3)
    looks.raised, seen = None, len(looks.at)
    until(lambda: len(looks.at) >= seen + 2)
    assert caplog.text.count("reaper pass failed") == 1


def test_a_fault_of_our_own_ends_nothing_and_shows_where_it_is(
    looks: Looks, loop: PeriodicLoop, caplog: pytest.LogCaptureFixture
) -> None:
    looks.raised = KeyError("nobody foresaw this")
    loop.start()
    until(lambda: len(looks.at) >= 3)
    assert "nobody foresaw this" in caplog.text
    assert "Traceback" in caplog.text


def test_it_ends_when_it_is_told_to(looks: Looks, loop: PeriodicLoop) -> None:
    loop.start()
    until(lambda: len(looks.at) >= 1)
    loop.stop(5)
    seen = len(looks.at)
    time.sleep(0.3)
    assert len(looks.at) == seen


@pytest.mark.parametrize(("queues", "starts"), [(["ops"], True), (["plan"], False), (["ops", "plan"], True)])
def test_it_starts_where_the_queue_ops_is_served(
    queues: list[str], starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestrator.reaper import loop as module

    begun: list[Any] = []
    monkeypatch.setattr(module, "_loops", [])
    monkeypatch.setattr(module, "connect", lambda _: None)
    monkeypatch.setattr(module, "JobStore", lambda *_: None)
    monkeypatch.setattr(module, "Reaper", lambda *_: SimpleNamespace(run=None))
    monkeypatch.setattr(module, "Sender", lambda *_: SimpleNamespace(run=None))
    monkeypatch.setattr(module, "PeriodicLoop", lambda *_: SimpleNamespace(start=lambda: begun.append(1)))
    consumed = SimpleNamespace(consume_from=dict.fromkeys(queues))
    app = SimpleNamespace(amqp=SimpleNamespace(queues=consumed), ramify=None)
    module.start_loops(SimpleNamespace(app=app))
    assert bool(begun) is starts
