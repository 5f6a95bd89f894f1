"""A random worker killed (SIGKILL) every second under load: every job ends, every leaf counts once, answers as ever.

RAMIFY_TEST_SEED and RAMIFY_TEST_ROUNDS choose the long form: docs/faults.md.
"""

from __future__ import annotations

import statistics

import pytest

from tests.faults.harness.form import FORM
from tests.faults.harness.report import show, verdict
from tests.faults.harness.rounds import Ground, Harm, Plan, run_round

#: Seconds in the middle of all leaves from the kill of their worker to their record.
MEDIAN_RECOVERY_S = 15.0
#: Share of the jobs that may end with a reason in place of an answer.
_MOST_UNANSWERED = 0.01
#: Kills a second at least, on a machine that is slow to start processes.
_LEAST_KILLS = 0.3
_BEFORE_S = 2.0


@pytest.mark.timeout(FORM.seconds + FORM.jobs + 420)
@pytest.mark.parametrize("seed", FORM.seeds)
def test_given_workers_that_are_killed_when_jobs_run_then_nothing_is_lost_and_nothing_is_done_twice(
    ground: Ground, seed: int
) -> None:
    def harm(of: Harm) -> None:
        of.pause(_BEFORE_S)  # so that there is work to be killed
        of.kills.storm(of.seconds - _BEFORE_S, of.stop)

    one = run_round(ground, Plan("worker kills", seed, FORM.seconds, FORM.jobs, FORM.load_s), harm)

    show(one)
    verdict(ground.rig, one)
    assert len(one.kills.done) >= _LEAST_KILLS * (FORM.seconds - _BEFORE_S), "the storm has really blown"
    assert len(one.jobs) == FORM.jobs
    unanswered = FORM.jobs - one.states["done"] - one.states["cancelled"]
    assert unanswered <= _MOST_UNANSWERED * FORM.jobs, "work that is innocent of its workers' deaths is not retired"
    assert one.recovery.leaves, "no leaf was killed: nothing is shown"
    assert statistics.median(one.recovery.leaves) < MEDIAN_RECOVERY_S
