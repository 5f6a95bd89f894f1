"""What a call that got no answer in its job's time means for the calls after it."""

from __future__ import annotations

import time

import pytest

from shared.providers.gates.cut_off import CutOffs, calls_of


def test_given_a_call_that_was_cut_off_when_its_job_has_less_time_left_then_no_other_waits_it_out() -> None:
    cuts = CutOffs(failures=5)
    with calls_of("job"):
        cuts.note(2.0)
        assert cuts.against(2.0) is not None
        assert cuts.against(2.1) is None, "a call with more time may have an answer"
    with calls_of("other"):
        assert cuts.against(1.0) is None
    assert cuts.against(1.0) is None, "no job"


def test_given_the_time_that_it_took_when_that_is_over_then_it_is_tried_again() -> None:
    cuts = CutOffs(failures=5)
    with calls_of("job"):
        cuts.note(0.05)
        assert cuts.against(0.01) is not None
        time.sleep(0.06)
        assert cuts.against(0.01) is None


def test_given_many_in_a_row_when_none_was_answered_then_all_jobs_with_less_time_are_refused() -> None:
    cuts = CutOffs(failures=2)
    for job in ("one", "two"):
        with calls_of(job):
            cuts.note(2.0)
    with calls_of("three"):
        assert cuts.against(1.0) is not None
        cuts.answered()
        assert cuts.against(1.0) is None


@pytest.mark.parametrize("failures", [0])
def test_given_no_breaker_when_calls_are_cut_off_then_all_are_made(failures: int) -> None:
    cuts = CutOffs(failures)
    with calls_of("job"):
        cuts.note(2.0)
        assert cuts.against(1.0) is None


def test_given_more_jobs_than_are_remembered_when_cut_off_then_those_whose_time_is_over_make_room() -> None:
    cuts = CutOffs(failures=1000)
    for number in range(600):
        with calls_of(str(number)):
            cuts.note(0.0)
    with calls_of("last"):
        cuts.note(2.0)
        assert cuts.against(1.0) is not None
