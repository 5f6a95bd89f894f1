"""Liveness: once the faults stop, every job comes to its end, in time, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from orchestrator.reaper.rules import GIVE_UP_S
from shared.jobs import TERMINAL, State
from shared.jobs.keys import ACTIVE, AdmissionKeys, JobKeys
from shared.models import Lane
from tests.model.world import World

#: Seconds between two looks of the reaper, and how many looks a job may need after all is said.
LOOK_S, LOOKS = 2.0, 30
#: Seconds in which a job ends when nothing goes wrong any more: a heartbeat lasts 20 s. Each suspect is tried alone.
SOON_S, SUSPECT_S = 34.0, 22.0


class Due(NamedTuple):
    """When a job must have ended, and how many seconds it has at least for its wait and for its work."""

    ends_by: float
    left_s: float


def _due(world: World, job_id: str, now: float) -> Due:
    names = ["waits_until", "deadline_s", "deadline_at"]
    waits_until, deadline_s, deadline_at = (float(v or 0) for v in world.wire.hmget(JobKeys(job_id).job, names))
    if deadline_at:
        return Due(deadline_at, deadline_at - now)
    return Due(waits_until + deadline_s, min(waits_until - now, deadline_s))


def heal(world: World) -> None:
    """No more faults: those that stood still go on, everything is delivered, the reaper looks every 2 s."""
    for fiber in list(world.fibers):
        if not fiber.wakes_at and not fiber.ended:
            world.resume(fiber)
    world.advance(LOOK_S)
    world.llm_away = False
    since = world.clock.at
    failed = {job_id: world.wire.hget(JobKeys(job_id).job, "leaves_failed") for job_id in world.open_jobs()}
    due = {job_id: _due(world, job_id, since) for job_id in world.open_jobs()}
    soon = SOON_S + SUSPECT_S * sum(_deaths(world, job_id) for job_id in due) + _wait_s(world, due)
    while left := world.open_jobs():
        deliver_all(world)
        world.look()
        for job_id in left:
            late = world.clock.at - max(due[job_id].ends_by + GIVE_UP_S, since) - LOOKS * LOOK_S
            assert late < 0, f"stuck: {describe(world, job_id)}"
        world.advance(LOOK_S if world.clock.at - since < soon else 5 * LOOK_S)
    deliver_all(world)
    for _ in range(3):
        world.look()
        world.advance(LOOK_S)
        deliver_all(world)
    _in_time(world, due, failed, since, soon)
    _nothing_left(world)


def deliver_all(world: World, most: int = 2_000) -> None:
    """In order, each to its end."""
    for _ in range(most):
        waiting = world.broker.order()
        if not waiting:
            return
        world.deliver(waiting[0], world.workers[waiting[0] % len(world.workers)])
    raise AssertionError(f"after {most} messages there are still {len(world.broker.waiting)}")


def _in_time(world: World, due: dict[str, Due], failed: dict[str, bytes | None], since: float, soon: float) -> None:
    """Those that had time enough are done, and none of their leaves has failed since."""
    poisoned = {job_id for job_id in due if _deaths(world, job_id) > 1} | {job_id for job_id, _ in world.poison}
    for job_id, when in due.items():
        job = world.jobs.job(job_id)
        assert job is not None
        ended = float(world.wire.hget(JobKeys(job_id).job, "finished_at") or 0)
        assert ended - max(when.ends_by + GIVE_UP_S, since) < LOOKS * LOOK_S, describe(world, job_id)
        if when.left_s > soon + job.leaf_reserve and job_id not in poisoned:
            assert job.state is State.DONE, f"time was left, but: {describe(world, job_id)}"
            assert ended - since < soon, f"{ended - since:.0f} s of silence: {describe(world, job_id)}"
            assert world.wire.hget(JobKeys(job_id).job, "leaves_failed") == failed[job_id], describe(world, job_id)


def _deaths(world: World, job_id: str) -> int:
    """The most that one piece of its work has: three of them retire it, whoever is to blame."""
    return max((item.deaths for item in world.jobs.work.items(job_id).values()), default=0)


def _wait_s(world: World, job_ids: Iterable[str]) -> float:
    """For how long work still waits for a server that has failed."""
    work = (item for job_id in job_ids for item in world.jobs.work.items(job_id).values())
    return max((max(0.0, item.postponed.until - world.clock.at) for item in work if item.postponed), default=0.0)


def _nothing_left(world: World) -> None:
    assert world.wire.zrange(ACTIVE, 0, -1) == []
    assert world.wire.hgetall(AdmissionKeys.under_way) == {}
    for lane in Lane:
        keys = AdmissionKeys(lane.value)
        assert {int(value) for value in world.wire.hvals(keys.counts)} <= {0}, world.wire.hgetall(keys.counts)
        assert world.wire.hgetall(keys.held) == {}
        assert world.wire.lrange(keys.ring, 0, -1) == []
    for job_id in world.shapes:
        job = world.jobs.job(job_id)
        assert job is None or job.state in TERMINAL


def describe(world: World, job_id: str) -> str:
    """All that is known of a job."""
    keys = JobKeys(job_id)
    hashes = {key: {k.decode(): v[:100] for k, v in world.wire.hgetall(key).items()} for key in (keys.job, keys.work)}
    events = [(number.decode(), fields) for number, fields in world.wire.xrange(keys.events)][-12:]
    return f"{job_id} now {world.clock.at}: {hashes}, {world.wire.hgetall(keys.leaves)}, {events}"
