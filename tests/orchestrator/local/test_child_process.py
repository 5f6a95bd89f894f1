"""The pauses between the starts of a child."""

import signal
import time

import pytest

from orchestrator.local.child_process import Child, Program, pause


def test_given_deaths_in_a_row_when_the_pause_is_asked_then_it_doubles_up_to_thirty_seconds():
    assert [pause(n) for n in (1, 2, 3, 4, 5, 6, 500)] == [1, 2, 4, 8, 16, 30, 30]


def test_given_a_child_that_ran_long_when_it_dies_then_the_pause_starts_anew(tmp_path):
    child = Child(Program("plan", ("true",)), tmp_path / "plan.log")
    assert [child.died(10), child.died(11), child.died(13)] == [1, 2, 4]
    assert child.died(1000) == 1


def test_given_a_child_that_is_killed_again_and_again_when_it_dies_then_the_pause_stays_short(tmp_path):
    child = Child(Program("plan", ("sleep", "60")), tmp_path / "plan.log")
    pauses = []
    for _ in range(3):
        child.start()
        assert child.signal(signal.SIGKILL)
        assert child.wait(10)
        pauses.append(child.died(time.monotonic()))
    assert pauses == pytest.approx([1, 1, 1])
