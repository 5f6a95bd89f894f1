"""The reaper's rules and the job store, model-checked: no history of faults loses work or leaves a job stuck."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.conftest import MakeWorld
from tests.model.machine import Machine

#: Examples; by default few and always the same. With RAMIFY_TEST_ROUNDS as many as are asked for, new ones each time.
ROUNDS = int(os.environ.get("RAMIFY_TEST_ROUNDS", "0"))


def profile() -> settings:
    return settings(
        max_examples=ROUNDS or 50,
        stateful_step_count=100 if ROUNDS else 60,
        derandomize=not ROUNDS,
        deadline=None,
        database=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )


@pytest.mark.timeout(900)
def test_given_any_history_of_faults_when_they_stop_then_every_job_ends_in_time(make_world: MakeWorld) -> None:
    Machine.make = staticmethod(make_world)
    run_state_machine_as_test(Machine, settings=profile())
