"""A hundred workers on hosts that come and go: every job is done once, tenants get equal shares, the window holds."""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest

from shared.jobs.keys import ACTIVE, JobKeys
from shared.models import Lane
from tests.model.checks import Checks
from tests.model.conftest import MakeWorld
from tests.model.day import TENANTS
from tests.model.fleet import Fleet
from tests.model.healing import describe
from tests.model.rates import Rates

#: By default always the same; with RAMIFY_TEST_ROUNDS so many others.
ROUNDS = int(os.environ.get("RAMIFY_TEST_ROUNDS", "0"))
SEED = 20_261_123
HOSTS, WINDOW = 25, 24
#: Jobs of the tenant that floods the lane first, and of each of the others, which come right behind it.
FLOOD, FEW = (240, 80) if ROUNDS else (40, 10)
RATES = Rates(poison=0.0, cancel=0.0, death=0.0002, stall=0.0002)
STEP_S, MOST_S = 5.0, 1800.0


@pytest.mark.timeout(900)
def test_given_a_hundred_workers_on_hosts_that_come_and_go_then_every_job_is_done_once_and_shares_are_equal(
    make_world: MakeWorld,
) -> None:
    for seed in [time.time_ns() % 10**9 for _ in range(ROUNDS)] or [SEED]:
        fleet = make_world(Fleet, seed=seed, hosts=HOSTS, rates=RATES, lanes={"under_way": WINDOW})
        try:
            _live(fleet, seed)
        finally:
            fleet.close()


def _live(fleet: Fleet, seed: int) -> None:
    assert len(fleet.workers) == 100
    asked = {fleet.ask(tenant): tenant for tenant in [TENANTS[0]] * FLOOD + list(TENANTS[1:]) * FEW}
    began, submitted, checks = time.monotonic(), fleet.clock.at, Checks(fleet.wire)
    checks.clock_runs_true = False  # processes read it by up to two seconds apart
    for mean, happens in ((8.0, fleet.cut_host), (30.0, fleet.lose_host), (10.0, fleet.redeliver)):
        fleet.every(mean, happens)
    fleet.look_around()
    start = fleet.true
    while fleet.wire.zcard(ACTIVE):
        assert fleet.true - start < MOST_S, describe(fleet, fleet.open_jobs()[0])
        fleet.run_until(fleet.true + STEP_S)
        checks.jobs(asked)
        checks.lines(Lane.BATCH, TENANTS, window=WINDOW)
    states = {job_id: fleet.wire.hmget(JobKeys(job_id).job, ["state", "partial"]) for job_id in asked}
    wrong = [describe(fleet, job_id) for job_id, state in states.items() if state != [b"done", b"0"]]
    assert wrong == []
    shares = _shares(fleet, asked, submitted)
    print(
        f"\nseed {seed}: {len(asked)} jobs in {fleet.true - start:.0f} s, faults {dict(fleet.tally.faults)},"
        f" shares {dict(shares)}, {time.monotonic() - began:.0f} s of ours"
    )
    assert max(shares.values()) <= 1.25 * min(shares.values()) + 2 * WINDOW, shares


def _shares(fleet: Fleet, asked: dict[str, str], since: float) -> Counter[str]:
    """Leaves of the jobs of each tenant that were admitted while all of them had some waiting: places go by leaves."""
    turns, leaves = dict[str, float](), dict[str, int]()
    for job_id in asked:
        admitted_at, total = fleet.wire.hmget(JobKeys(job_id).job, ["admitted_at", "leaves_total"])
        turns[job_id], leaves[job_id] = float(admitted_at), int(total)
    over = min(max(turns[job_id] for job_id, owner in asked.items() if owner == tenant) for tenant in TENANTS)
    shares = Counter[str]()
    for job_id, turn in turns.items():
        shares[asked[job_id]] += leaves[job_id] if since < turn <= over else 0
    return shares
