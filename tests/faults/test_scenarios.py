"""Everything else that can go wrong under a load, one round each; the same count after it as after the storms."""

from __future__ import annotations

import pytest

from tests.faults.harness import broker, processes
from tests.faults.harness.form import FORM
from tests.faults.harness.report import show, verdict
from tests.faults.harness.rounds import Ground, Plan, run_round

_SECONDS, _JOBS, _LOAD_S = 10.0 if FORM.long else 6.0, 40, 2.0
#: Submits go on while these last: some are refused.
_REFUSING = ("full disk", "no memory")
SCENARIOS = {
    "mixed": broker.mixed,
    "lost messages": broker.lost,
    "doubled messages": broker.doubled,
    "shuffled queues": broker.shuffled,
    "forged results": broker.forged,
    "damaged records": broker.damaged,
    "a frozen worker": processes.frozen,
    "ops killed": processes.without_ops,
    "two pools at once": processes.two_at_once,
    "supervisor killed": processes.without_supervisor,
    "two reapers": processes.two_reapers,
    "wrong clocks": processes.wrong_clock,
    "full disk": processes.full_disk,
    "no memory": processes.no_memory,
}
#: The one that CI runs too.
_SHORT = "mixed"


def _cases() -> list[object]:
    long = pytest.mark.skipif(not FORM.long, reason="only in the long form: make faults")
    return [pytest.param(name, marks=() if name == _SHORT else long, id=name) for name in SCENARIOS]


@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", _cases())
@pytest.mark.parametrize("seed", FORM.seeds[:1])
def test_given_a_fault_when_jobs_run_then_nothing_is_lost_and_nothing_is_done_twice(
    ground: Ground, name: str, seed: int
) -> None:
    load_s = _SECONDS if name in _REFUSING else _LOAD_S
    one = run_round(ground, Plan(name, seed, _SECONDS, min(_JOBS, FORM.jobs), load_s), SCENARIOS[name])

    show(one)
    verdict(ground.rig, one)
    unanswered = {state: count for state, count in one.states.items() if state not in {"done", "cancelled"}}
    assert sum(unanswered.values()) <= (broker.DAMAGED if name == "damaged records" else 0), unanswered
