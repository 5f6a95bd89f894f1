"""One round: the load goes in while something does harm; then everything must end, and everything is looked at."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from redis.exceptions import RedisError

from tests.faults.harness.answers import Essence
from tests.faults.harness.census import (
    batch_faults,
    key_faults,
    keys_without_end,
    unknown_jobs,
    until_quiet,
)
from tests.faults.harness.checks import job_faults
from tests.faults.harness.jobs import TERMINAL, Recovery, Seen, recovery, seen, states
from tests.faults.harness.kills import Kills
from tests.faults.harness.load import Ask, orders
from tests.faults.harness.rig import Rig
from tests.faults.harness.traffic import Sent, Traffic

#: Seconds after the harm within which every job has ended, and after that until nothing is left lying.
END_S, QUIET_S = 120.0, 60.0


@dataclass
class Ground:
    """What rounds stand on: a stack, the questions, and their answers while nobody does harm."""

    rig: Rig
    asked: list[Ask]
    calm: dict[int, Essence]


@dataclass(frozen=True)
class Plan:
    """A round by name: seed, seconds of harm, jobs, and the first seconds in which these are sent."""

    name: str
    seed: int
    seconds: float
    jobs: int
    load_s: float


@dataclass
class Harm:
    """What a scenario gets: the stack, a seed's dice, the kills it makes, when the load has gone in."""

    rig: Rig
    dice: random.Random
    kills: Kills
    seconds: float
    sent: Sent
    stop: threading.Event

    def pause(self, seconds: float) -> None:
        """Wait, but not when the round is given up."""
        self.stop.wait(seconds)


@dataclass
class Round:
    """What came of it."""

    plan: Plan
    sent: Sent
    kills: Kills
    recovery: Recovery
    jobs: dict[str, Seen]
    faults: list[str]
    seconds: float  # from the first submit to the last job's end

    @property
    def states(self) -> Counter[str]:
        """State -> jobs."""
        return Counter(job.state or "lost" for job in self.jobs.values())

    @property
    def partial(self) -> int:
        """Jobs that are done with leaves missing."""
        return sum(job.fields.get("partial") == "1" for job in self.jobs.values())


def run_round(ground: Ground, plan: Plan, harm: Callable[[Harm], None], *, lost_before_s: float | None = None) -> Round:
    """Send the load while `harm` works, wait for the end of all, and look.

    `lost_before_s`: a job that was acknowledged at most so many seconds before a kill of Redis may be forgotten.
    """
    rig = ground.rig
    rig.without_caches()
    before = {key.decode() for key in rig.redis.zrange("ramify:jobs", 0, -1)}
    began = time.monotonic()
    sent, kills = _under_harm(ground, plan, harm)
    rig.until_whole()
    ids = {ack.job_id for ack in sent.jobs}
    refused = set(unknown_jobs(rig, ids | before))  # the submit was refused after the job had been made
    open_jobs = _until_ended(rig, ids | refused, END_S)
    end_s = time.monotonic() - began
    stuck = seen(rig.redis, open_jobs).values()
    faults = [f"job {job.job_id} did not end in {END_S:.0f} s: leaves {job.leaves}, work {job.work}" for job in stuck]
    faults += until_quiet(rig.redis, QUIET_S)
    jobs = seen(rig.redis, ids | refused)
    forgotten = _forgivable(sent, jobs, kills, lost_before_s)
    faults += _job_faults(ground, sent, {job_id: job for job_id, job in jobs.items() if job_id not in forgotten})
    faults += [*batch_faults(rig.client, sent), *key_faults(sent, forgotten)]
    faults += [f"key without a TTL: {key}" for key in keys_without_end(rig.redis)]
    return Round(plan, sent, kills, recovery(kills.done, jobs), jobs, faults, end_s)


def _under_harm(ground: Ground, plan: Plan, harm: Callable[[Harm], None]) -> tuple[Sent, Kills]:
    """Send and harm at once, until both have ended."""
    dice, stop = random.Random(plan.seed), threading.Event()
    kills = Kills(ground.rig, dice)
    traffic = Traffic(ground.rig, orders(ground.asked[: plan.jobs], plan.seed, plan.load_s, f"{plan.name} {plan.seed}"))
    with ThreadPoolExecutor(2) as threads:
        sending = traffic.start(threads)
        harming = threads.submit(harm, Harm(ground.rig, dice, kills, plan.seconds, traffic.sent, stop))
        try:
            sending.result(timeout=plan.seconds + END_S)
            harming.result(timeout=plan.seconds + END_S)
        finally:
            stop.set()
    return traffic.sent, kills


def _until_ended(rig: Rig, ids: Iterable[str], seconds: float) -> list[str]:
    """Wait for the end of these jobs; those that have not ended after `seconds`."""
    end, still = time.monotonic() + seconds, sorted(ids)
    while still and time.monotonic() < end:
        try:
            now = states(rig.redis, still)
        except RedisError:
            now = dict.fromkeys(still, "?")
        still = [job_id for job_id in still if now[job_id] and now[job_id] not in TERMINAL]
        time.sleep(0.1)
    return still


def _job_faults(ground: Ground, sent: Sent, jobs: dict[str, Seen]) -> list[str]:
    acks = {ack.job_id: ack for ack in sent.jobs}
    return [
        fault
        for job_id, job in sorted(jobs.items())
        for fault in job_faults(job, acks.get(job_id), ground.rig.client, ground.calm)
    ]


def _forgivable(sent: Sent, jobs: dict[str, Seen], kills: Kills, seconds: float | None) -> set[str]:
    """Jobs that are gone, and may be: the disk had not been told of them when Redis was killed."""
    if seconds is None:
        return set()
    deaths = [kill.at for kill in kills.done if kill.name == "redis"]
    return {
        ack.job_id
        for ack in sent.jobs
        if not jobs[ack.job_id].state and any(0 <= death - ack.at <= seconds for death in deaths)
    }
