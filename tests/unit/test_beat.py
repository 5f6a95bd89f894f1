"""Beat's own scheduler: it goes by the monotonic clock, and sends nothing to where nobody listens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from orchestrator import beat
from orchestrator.beat import MOST_WAITING, SteadyScheduler
from shared.celery_app import make_app
from shared.contract import TaskName
from shared.settings import load_settings

_BROKERS = count()


class Clock:
    """Both clocks of the machine."""

    def __init__(self) -> None:
        self.steady, self.wall = 1000.0, datetime(2026, 11, 20, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.steady

    def passes(self, seconds: float) -> None:
        self.steady += seconds
        self.wall += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(beat, "time", clock)
    monkeypatch.setattr(Celery, "now", lambda _: clock.wall)
    return clock


@pytest.fixture
def app() -> Iterator[Celery]:
    app = make_app(load_settings(redis={"url": "redis://127.0.0.1:1/0"}))
    app.conf.broker_url = f"memory://{next(_BROKERS)}"
    yield app
    app.close()


def waiting(app: Celery) -> int:
    with app.connection_for_read() as connection:
        return int(connection.default_channel.queue_declare("ops", passive=True).message_count)


def take_all(app: Celery) -> None:
    with app.connection_for_read() as connection:
        connection.default_channel.queue_purge("ops")


def test_the_reaper_is_sent_every_two_seconds(app: Celery, clock: Clock) -> None:
    scheduler = SteadyScheduler(app=app)
    take_all(app)
    sent = []
    for _ in range(9):
        assert scheduler.tick() <= 2.0
        sent.append(waiting(app))
        take_all(app)
        clock.passes(0.5)
    assert sent == [1, 0, 0, 0, 1, 0, 0, 0, 1]
    assert [entry.task for entry in scheduler.schedule.values()] == [TaskName.OPS_REAP]


@pytest.mark.parametrize("hours", [-1, 1, -10_000])
def test_a_wall_clock_that_is_set_changes_nothing(app: Celery, clock: Clock, hours: int) -> None:
    scheduler = SteadyScheduler(app=app)
    scheduler.tick()
    take_all(app)
    clock.wall += timedelta(hours=hours)
    clock.passes(2.0)
    assert scheduler.tick() == pytest.approx(2.0)
    assert waiting(app) == 1
    assert "expires" not in app.conf.beat_schedule["reap"].get("options", {}), "another host's clock may be wrong"


def test_what_nobody_takes_does_not_pile_up(app: Celery, clock: Clock) -> None:
    scheduler = SteadyScheduler(app=app)
    for _ in range(MOST_WAITING + 20):
        scheduler.tick()
        clock.passes(2.0)
    assert waiting(app) == MOST_WAITING
    take_all(app)
    scheduler.tick()
    assert waiting(app) == 1


@pytest.mark.parametrize("error", [OperationalError("gone"), ConnectionResetError("gone")])
def test_a_broker_that_is_away_ends_nothing(
    app: Celery, clock: Clock, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = SteadyScheduler(app=app)
    scheduler.tick()
    with pytest.MonkeyPatch.context() as away:
        away.setattr(beat, "queue_lengths", _raise(error))
        clock.passes(2.0)
        assert scheduler.tick() == pytest.approx(2.0)
    assert "reap cannot be sent" in caplog.text
    take_all(app)
    clock.passes(2.0)
    scheduler.tick()
    assert waiting(app) == 1


def _raise(error: Exception):
    def raising(*_: object, **__: object) -> None:
        raise error

    return raising
