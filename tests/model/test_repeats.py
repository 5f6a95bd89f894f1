"""Every message comes four times: nothing is sent again for that, since nothing is lost."""

from __future__ import annotations

from shared.jobs import State
from shared.jobs.keys import JobKeys
from shared.models import JobRequest
from tests.model.conftest import MakeWorld
from tests.model.healing import LOOK_S
from tests.model.shapes import Shape

JOBS, COPIES = 5, 4
#: Seconds that a message takes: the queues stay full for longer than the reaper's patience with a message.
EACH_S = 0.3


def test_repeated_messages_cause_no_redrive(make_world: MakeWorld) -> None:
    """A message that comes again finds its job further on, and what stands there was sent later than it was."""
    world = make_world(split=False)
    world.broker.arrived = lambda parcel: [world.broker.repeat(parcel.number) for _ in range(COPIES - 1)]
    job_ids = [
        world.submit(Shape(2, branches=1, chain=1), JobRequest(question="why?", deadline_s=3000)) for _ in range(JOBS)
    ]
    looked = world.true
    while waiting := world.broker.order():
        world.deliver(waiting[0], world.workers[waiting[0] % len(world.workers)])
        world.advance(EACH_S)
        if world.true - looked >= LOOK_S:
            world.look()
            looked = world.true
            redriven = {job_id: world.wire.hget(JobKeys(job_id).job, "redriven") for job_id in job_ids}
            assert set(redriven.values()) == {None}, redriven
    assert {world.wire.hget(JobKeys(job_id).job, "state") for job_id in job_ids} == {State.DONE.value.encode()}
    world.close()
