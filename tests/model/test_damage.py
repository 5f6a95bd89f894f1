"""A damaged job costs itself only: all others end as if nothing had been, and it ends too or is named with a reason."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from shared.errors import RamifyError
from shared.jobs import JobReader, State
from shared.jobs.keys import JobKeys
from shared.models import JobRequest
from tests.model.conftest import MakeWorld
from tests.model.damage import Damage, StrictWorld, damages, do
from tests.model.healing import LOOK_S, SOON_S, deliver_all
from tests.model.shapes import Shape

#: One job has them all: the question's own leaf, another, a branch, and a leaf that waits for one before it.
SHAPE = Shape(1, branches=1, chain=1)
#: How far a job has come when it is damaged: messages of it that have been delivered.
MOMENTS = {"waiting": 0, "planned": 1, "searched": 2, "half done": 4}
#: Damaged jobs of a moment; the long form of the fault tests takes all.
SOME = 60
ALL = "RAMIFY_TEST_ROUNDS" in os.environ


class Night:
    """Damaged jobs among healthy ones."""

    def __init__(self, world: StrictWorld) -> None:
        self.world = world
        self.damaged = dict[str, Damage]()
        self.healthy = list[str]()

    def submit(self) -> str:
        return self.world.submit(SHAPE, JobRequest(question="why?", deadline_s=600))

    def step(self, job_id: str, messages: int) -> None:
        for _ in range(messages):
            mine = [number for number in self.world.broker.order() if self._job(number) == job_id]
            if not mine:
                return
            self.world.deliver(mine[0], self.world.workers[0])

    def _job(self, number: int) -> object:
        return self.world.broker.waiting[number].raw["job_id"]

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


def prepared(night: Night, damage: Damage | None, moment: int) -> None:
    job_id = night.submit()
    night.step(job_id, moment)
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
    night.step(model, MOMENTS[moment])
    kinds = chosen(list(damages(world.wire, model)))
    night.healthy.append(model)
    for place, damage in enumerate(kinds):
        prepared(night, damage, MOMENTS[moment])
        if place % 20 == 0:
            prepared(night, None, MOMENTS[moment])
    night.live(SOON_S)
    ends = world.ends()
    assert {job_id: ends[job_id] for job_id in night.healthy} == dict.fromkeys(night.healthy, State.DONE)
    night.live(700)
    ends = world.ends()
    for job_id, damage in night.damaged.items():
        gone = not world.wire.exists(JobKeys(job_id).job)
        named = world.jobs.damaged.get(job_id)
        assert gone or ends[job_id] or named, f"{damage}: job {job_id} has neither ended nor a reason"
    assert night.marks() == {}
    assert read_by_people(night) == []
    world.close()


def read_by_people(night: Night) -> list[str]:
    """What the client raises for a job that is no sentence of ours."""
    faults = list[str]()
    reader = JobReader(night.world.wire)
    for job_id, damage in night.damaged.items():
        reads: tuple[Callable[[str], object], ...] = (reader.status, reader.answer, night.world.jobs.results)
        for read in reads:
            try:
                read(job_id)
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                if isinstance(error, RamifyError) and "\n" not in str(error):
                    continue
                faults.append(f"{damage}: {read.__name__} raised {type(error).__name__}: {error}")
    return faults
