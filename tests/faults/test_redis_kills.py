"""Redis killed (SIGKILL) and restarted under load, with an append-only file that is synced every second: every job that
was acknowledged more than a second before ends; the others end, or their submit was refused, or they are unknown."""

from __future__ import annotations

import pytest

from tests.faults.harness.form import FORM
from tests.faults.harness.report import show, verdict
from tests.faults.harness.rounds import Ground, Harm, Plan, run_round
from tests.support.waiting import until

#: What the append-only file may be behind.
SYNC_S = 1.0
_SECONDS = FORM.seconds if FORM.long else 6.0


@pytest.mark.timeout(FORM.seconds + FORM.jobs + 420)
@pytest.mark.parametrize("seed", FORM.seeds)
def test_given_a_redis_that_is_killed_when_jobs_run_then_what_was_acknowledged_ends(ground: Ground, seed: int) -> None:
    def harm(of: Harm) -> None:
        part = of.seconds / (FORM.redis_kills + 1)
        for _ in range(FORM.redis_kills):
            of.pause(part * of.dice.uniform(0.7, 1.0))
            of.rig.until_redis_answers()
            until(lambda: of.kills.kill("redis"), 10, "the supervisor says which process Redis is now")

    one = run_round(ground, Plan("Redis kills", seed, _SECONDS, FORM.jobs, FORM.load_s), harm, lost_before_s=SYNC_S)

    show(one)
    verdict(ground.rig, one)
    assert one.kills.per_pool() == {"redis": FORM.redis_kills}
    assert one.states["done"] > 0.5 * FORM.jobs
