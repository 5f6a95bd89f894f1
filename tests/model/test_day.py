"""Simulated hours of jobs and of faults: nothing is stuck, nothing leaks, and it says what it cost."""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter

import pytest

from orchestrator.reaper.rules import GIVE_UP_S
from shared.jobs import TERMINAL, State
from shared.jobs.dead_letters import DeadKeys
from shared.jobs.keys import ACTIVE, RECENT, AdmissionKeys, JobKeys
from shared.models import JobRequest, Lane
from tests.model.checks import Checks
from tests.model.conftest import MakeWorld
from tests.model.day import HOUR, LOOK_S, TENANTS, Day
from tests.model.healing import deliver_all, describe
from tests.model.shapes import Shape

#: By default always the same day (but for the order of sets: PYTHONHASHSEED=0). With RAMIFY_TEST_ROUNDS so many others.
ROUNDS = int(os.environ.get("RAMIFY_TEST_ROUNDS", "0"))
SEED = 20_261_120
#: Simulated hours of each.
HOURS = 24 if ROUNDS else 4
#: Seconds past the deadline and the giving up in which a look must come by; a reaper may die now and then.
SLACK_S = 30.0


@pytest.mark.timeout(900)
def test_given_hours_of_faults_then_no_job_is_stuck_and_nothing_leaks(make_world: MakeWorld) -> None:
    for seed in [time.time_ns() % 10**9 for _ in range(ROUNDS)] or [SEED]:
        day = make_world(Day, seed=seed, lanes={"under_way": 8})
        try:
            _live(day, seed)
        finally:
            day.close()


def _live(day: Day, seed: int) -> None:
    began, checks, sizes, ends = time.monotonic(), Checks(day.wire), list[int](), Counter[str]()
    start, rates = day.true, day.rates
    day.every(rates.background_every, day.arrive)
    day.every(rates.burst_every, lambda: [day.at(2.0 * n, day.arrive) for n in range(rates.burst)])
    day.every(rates.kill_every, lambda: day.die(day.dice.choice(day.workers)))
    day.every(rates.restart_every, day.restart)
    day.look_around()
    for hour in range(1, HOURS + 1):
        day.run_until(start + hour * HOUR)
        _check(day, checks, ends)
        sizes.append(_size(day))
    day.stop_arrivals()
    day.run_until(start + (HOURS + 2) * HOUR)
    _check(day, checks, ends)
    _nothing_left(day)
    _report(day, seed, ends, sizes, time.monotonic() - began)
    third = HOURS // 3
    assert max(sizes[third:]) < 2 * sizes[third], f"memory grows: {sizes}"


def _check(day: Day, checks: Checks, ends: Counter[str]) -> None:
    """Once an hour: all counts are true, nothing is late. What has ended is deleted, as its TTL does in the end."""
    checks.jobs(day.shapes)
    for lane in Lane:
        checks.lines(lane, TENANTS, window=8)
    for job_id in list(day.shapes):
        state, finished = day.wire.hmget(JobKeys(job_id).job, ["state", "finished_at"])
        over = day.due[job_id] + GIVE_UP_S + SLACK_S
        if State(state.decode()) not in TERMINAL:
            assert day.clock.at < over, f"stuck: {describe(day, job_id)}"
            continue
        assert float(finished) < over, f"late: {describe(day, job_id)}"
        if day.calm(job_id):
            assert state == b"done", f"there was time enough: {describe(day, job_id)}"
        ends[state.decode()] += 1
        del day.shapes[job_id]
        day.wire.delete(*day.wire.keys(f"ramify:{{{job_id}}}:*"))


def _size(day: Day) -> int:
    """Bytes of all keys but those of jobs, the list of jobs and dead letters. Every key must have a TTL."""
    keys = list(day.wire.scan_iter("ramify:*", count=1000))
    assert [key for key in keys if day.wire.ttl(key) == -1] == []
    others = (b"feedbeef}", RECENT.encode(), DeadKeys.tag.encode())
    return sum(day.wire.memory_usage(key) or 0 for key in keys if not any(one in key for one in others))


def _nothing_left(day: Day) -> None:
    assert day.wire.zcard(ACTIVE) == day.wire.hlen(AdmissionKeys.under_way) == 0
    assert not day.broker.waiting
    for lane in Lane:
        assert {int(value) for value in day.wire.hvals(AdmissionKeys(lane.value).counts)} <= {0}


def _report(day: Day, seed: int, ends: Counter[str], sizes: list[int], took: float) -> None:
    tally, waits = day.tally, day.tally.recoveries or [0.0]
    print(
        f"\nseed {seed}: {tally.jobs} jobs {dict(ends)}, faults {dict(tally.faults)}",
        f"{len(tally.recoveries)} recoveries, median {statistics.median(waits):.1f} s, worst {max(waits):.1f} s",
        f"{tally.deliveries} deliveries, {tally.wasted} of them had nothing to do, {tally.looks} looks",
        f"{sizes[0]} bytes of Redis after an hour, {max(sizes)} at most, {took:.0f} s of ours",
        sep="\n",
    )


def test_a_look_while_no_job_is_open_changes_nothing_so_the_day_may_leave_it_out(make_world: MakeWorld) -> None:
    world = make_world()
    for _ in range(3):
        world.submit(Shape(chain=1, branches=1), JobRequest(question="why?"))
    deliver_all(world)
    assert world.open_jobs() == []

    def content() -> dict[bytes, bytes]:
        return {key: world.wire.dump(key) for key in world.wire.keys("*") if b"{reaper}" not in key}

    before = content()
    for _ in range(5):
        world.advance(LOOK_S)
        world.look()
    assert content() == before
    assert not world.broker.waiting
    world.close()
