"""A client on a host whose clock is wrong waits for its jobs all the same: their time is told by Redis' clock."""

from __future__ import annotations

import time
from threading import Timer

import pytest

from orchestrator.client import Ramify


@pytest.mark.parametrize("ahead_s", [86_400, -86_400])
def test_given_a_wrong_clock_when_a_client_waits_then_it_waits_until_the_job_has_ended(
    ramify: Ramify, monkeypatch: pytest.MonkeyPatch, ahead_s: int
) -> None:
    right = time.time
    first, second = ramify.submit("why?"), ramify.submit("how?")
    monkeypatch.setattr(time, "time", lambda: right() + ahead_s)
    ends = [Timer(0.3, ramify.cancel, [job_id]) for job_id in (first, second)]
    for end in ends:
        end.start()
    assert ramify.wait(first).state == "cancelled"
    assert [event.data["state"] for event in ramify.stream(second)][-1] == "cancelled"
    for end in ends:
        end.join()


@pytest.mark.parametrize("ahead_s", [86_400, -86_400])
def test_given_a_wrong_clock_then_the_time_left_is_the_jobs_own(
    ramify: Ramify, monkeypatch: pytest.MonkeyPatch, ahead_s: int
) -> None:
    right = time.time
    status = ramify.status(ramify.submit("why?", deadline_s=50, queue_limit_s=10))
    monkeypatch.setattr(time, "time", lambda: right() + ahead_s)
    assert 90 < ramify.patience_s(status) <= 150
