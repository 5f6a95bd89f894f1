"""A damaged job costs itself only: all others end as if nothing had been, and it ends too or is named with a reason."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from shared.errors import DamagedError, RamifyError
from shared.jobs import JobReader, State
from shared.jobs.codec import text
from shared.jobs.keys import JobKeys
from shared.models import JobRequest
from tests.model.conftest import MakeWorld
from tests.model.damage import Damage, StrictWorld, damages, do
from tests.model.healing import LOOK_S, SOON_S, deliver_all
from tests.model.shapes import Shape

#: One job has them all: the question's own leaf, another, a branch, and a leaf that waits for one before it.
SHAPE = Shape(1, branches=1, chain=1)
#: How far a job has come when it is damaged: messages of it that have been delivered, or the state that they led to.
#: `at work`: a worker has begun the next one and stands in the middle of it.
MOMENTS: dict[str, int | str] = {
    "waiting": 0, "planned": 1, "searched": 2, "half done": 4, "at work": 4, "merged": "merging",
    "reranked": "summarising", "done": "done",
}  # fmt: skip
#: Damaged jobs of a moment; the long form of the fault tests takes all.
SOME = 20
ALL = "RAMIFY_TEST_ROUNDS" in os.environ


class Night:
    """Damaged jobs among healthy ones."""

    def __init__(self, world: StrictWorld) -> None:
        self.world = world
        self.damaged = dict[str, Damage]()
        self.healthy = list[str]()

    def submit(self) -> str:
        return self.world.submit(SHAPE, JobRequest(question="why?", deadline_s=600))

    def to(self, job_id: str, moment: str) -> None:
        """Deliver messages of a job until it is there."""
        wanted = MOMENTS[moment]
        for done in range(100):
            if wanted in {done, text(self.world.wire.hget(JobKeys(job_id).job, "state") or b"")}:
                break
            self.world.deliver(self._next(job_id), self.world.workers[0])
        if moment == "at work":
            self.world.deliver(self._next(job_id), self.world.workers[0], 4)

    def _next(self, job_id: str) -> int:
        waiting = self.world.broker.waiting
        return next(number for number in self.world.broker.order() if waiting[number].raw["job_id"] == job_id)

    def go_on(self) -> None:
        """Workers that stood in the middle of something go on."""
        for fiber in list(self.world.fibers):
            if not fiber.wakes_at and not fiber.ended:
                self.world.resume(fiber)

    def live(self, seconds: float) -> None:
        end = self.world.true + seconds
        while self.world.true < end:
            deliver_all(self.world, 20_000)
            self.world.look()
            self.world.advance(LOOK_S)

    def marks(self) -> dict[str, list[bytes]]:
        """Marks of workers that are at something: nobody is, any more."""
        left = {}
        for job_id in self.world.shapes:
            work = JobKeys(job_id).work
            if self.world.wire.type(work) == b"hash":
                left[job_id] = [name for name in self.world.wire.hkeys(work) if name.startswith(b"busy:")]
        return {job_id: names for job_id, names in left.items() if names}


def chosen(found: list[Damage]) -> list[Damage]:
    if ALL or len(found) <= SOME:
        return found
    return random.Random(7).sample(found, SOME)


def prepared(night: Night, damage: Damage | None, moment: str) -> None:
    job_id = night.submit()
    night.to(job_id, moment)
    if damage is None:
        night.healthy.append(job_id)
    else:
        do(night.world.wire, job_id, damage)
        night.damaged[job_id] = damage


@pytest.mark.parametrize("moment", list(MOMENTS))
def test_a_damaged_job_costs_itself_only(make_world: MakeWorld, moment: str) -> None:
    world = make_world(StrictWorld, split=False, lanes={"under_way": 5000})
    night = Night(world)
    model = night.submit()
    night.to(model, moment)
    kinds = chosen(list(damages(world.wire, model)))
    night.healthy.append(model)
    for place, damage in enumerate(kinds):
        prepared(night, damage, moment)
        if place % 20 == 0:
            prepared(night, None, moment)
    night.go_on()
    night.live(SOON_S)
    ends = world.ends()
    assert {job_id: ends[job_id] for job_id in night.healthy} == dict.fromkeys(night.healthy, State.DONE)
    complete = JobReader(world.wire).answer(model).coverage
    night.live(700)
    for job_id, damage in night.damaged.items():
        assert is_accounted_for(world, job_id), f"{damage}: job {job_id} has neither ended nor a reason"
        assert not claims_too_much(world, job_id, complete), f"{damage}: the answer of {job_id} is no whole one"
    assert night.marks() == {}
    assert read_by_people(night) == []
    world.close()


def is_accounted_for(world: StrictWorld, job_id: str) -> bool:
    """It has ended, is gone, or is set aside; one that had ended before says what is wrong when it is read."""
    if not world.wire.exists(JobKeys(job_id).job) or world.ends()[job_id] or world.jobs.damaged.get(job_id):
        return True
    try:
        world.jobs.job(job_id)
    except DamagedError:
        return bool(world.wire.exists(JobKeys(job_id).answer))
    return False


def claims_too_much(world: StrictWorld, job_id: str, complete: str) -> bool:
    """An answer that is not partial has every leaf of the tree."""
    with suppress(RamifyError):
        answer = JobReader(world.wire).answer(job_id)
        return answer is not None and not answer.partial and (answer.coverage != complete or not answer.results)
    return False


def read_by_people(night: Night) -> list[str]:
    """What the client raises for a job that is no sentence of ours."""
    faults = list[str]()
    reader = JobReader(night.world.wire)
    for job_id, damage in night.damaged.items():
        reads: dict[str, Callable[[str], object]] = {
            "status": reader.status,
            "answer": reader.answer,
            "events": lambda one: list(reader.events(one, 0.02)),
        }
        for name, read in reads.items():
            try:
                read(job_id)
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                if isinstance(error, RamifyError) and "\n" not in str(error):
                    continue
                faults.append(f"{damage}: {name} raises {type(error).__name__}: {error}")
    return faults
