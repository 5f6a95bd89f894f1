"""A reader goes on after an outage of Redis, says so once, and misses nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator import outage as module
from orchestrator.outage import Outage
from shared.errors import NotFoundError, NotRunningError
from shared.models import JobEvent

AWAY = NotRunningError("Redis at host:1 does not answer")


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time passes only while somebody waits."""
    taken: list[float] = []
    monkeypatch.setattr(module.time, "sleep", taken.append)
    monkeypatch.setattr(module.time, "monotonic", lambda: sum(taken))
    return taken


def event(number: int) -> JobEvent:
    return JobEvent(id=f"{number}-0", type="state", data={"state": "searching"})


class Flaky:
    """Five events; away after each of the given numbers, so many times."""

    def __init__(self, away: dict[int, int]) -> None:
        self.away, self.asked = dict(away), []

    def __call__(self, after: str) -> Iterator[JobEvent]:
        self.asked.append(after)
        seen = int(after.split("-", maxsplit=1)[0])
        if self.away.get(seen, 0) > 0:
            self.away[seen] -= 1
            raise AWAY
        for number in range(seen + 1, 6):
            yield event(number)
            if self.away.get(number, 0) > 0:
                self.away[number] -= 1
                raise AWAY


def test_a_stream_goes_on_after_the_last_event_that_came() -> None:
    told: list[str] = []
    source = Flaky({2: 3, 4: 1})
    assert [one.id for one in Outage(told.append).stream(source)] == ["1-0", "2-0", "3-0", "4-0", "5-0"]
    assert source.asked == ["0", "2-0", "2-0", "2-0", "4-0"]
    assert told == [f"{AWAY}; waiting for it up to 60 s"] * 2


def test_a_stream_that_never_began_is_refused_at_once(naps: list[float]) -> None:
    with pytest.raises(NotRunningError):
        list(Outage().stream(Flaky({0: 1})))
    assert naps == []


def test_an_outage_that_lasts_is_raised_in_the_end(naps: list[float]) -> None:
    told: list[str] = []
    with pytest.raises(NotRunningError, match="does not answer"):
        list(Outage(told.append, limit_s=10).stream(Flaky({3: 10_000})))
    assert 10 <= sum(naps) < 12
    assert len(told) == 1


def test_two_short_outages_are_not_one_long_one() -> None:
    answers = iter([AWAY] * 100 + ["a"] + [AWAY] * 100 + ["b"])

    def ask() -> str:
        found = next(answers)
        if isinstance(found, NotRunningError):
            raise found
        return found

    outage = Outage(lambda _: None)
    assert [outage.retry(ask), outage.retry(ask)] == ["a", "b"]


def test_other_errors_are_not_borne() -> None:
    def ask() -> str:
        raise NotFoundError("ID", "x", "there is none")

    with pytest.raises(NotFoundError):
        Outage().retry(ask)


def test_without_a_listener_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    list(Outage().stream(Flaky({2: 1})))
    assert [record.message for record in caplog.records] == [f"{AWAY}; waiting for it up to 60 s"]
