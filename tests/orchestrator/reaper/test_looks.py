"""Which jobs a run of the reaper reads, by a clock of the test."""

from __future__ import annotations

import pytest

from orchestrator.reaper.looks import Looks

A, B = frozenset({"worker a"}), frozenset({"worker b"})


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def looks(clock: Clock) -> Looks:
    """Behind its first run, which reads everything, and the time in which it goes on to."""
    looks = Looks(every=False, clock=clock)
    assert looks.wanted((), {"first"}, ("waits",), A) == ["first", "waits"]
    clock.now += 20
    looks.wanted((), {}, (), A)
    return looks


def test_a_job_under_way_is_read_once_a_message_could_be_lost_and_then_every_four_seconds(
    looks: Looks, clock: Clock
) -> None:
    read = []
    for _ in range(6):
        read.append(looks.wanted((), {"new"}, (), A))
        clock.now += 2
    assert read == [[], [], ["new"], [], ["new"], []]


def test_a_job_that_waits_is_read_at_once_and_then_seldom(looks: Looks, clock: Clock) -> None:
    read = []
    for _ in range(7):
        read.append(looks.wanted((), {}, ("waits",), A))
        clock.now += 2
    assert read == [["waits"], [], [], [], [], ["waits"], []]


def test_what_is_due_is_read_in_every_run(looks: Looks, clock: Clock) -> None:
    for _ in range(3):
        assert looks.wanted(("due",), {"due"}, ("due",), A) == ["due"]
        clock.now += 2


def test_when_a_worker_is_gone_all_are_read_for_a_while(looks: Looks, clock: Clock) -> None:
    assert looks.wanted((), {"job"}, (), A | B) == []
    for _ in range(5):
        assert looks.wanted((), {"job"}, ("waits",), B) == ["job", "waits"]
        clock.now += 2
    assert looks.wanted((), {"job"}, ("waits",), B) == []
