"""The simulated world itself: a job without faults goes all the way."""

from __future__ import annotations

import pytest

from shared.models import JobRequest
from tests.model.conftest import MakeWorld
from tests.model.shapes import Shape


@pytest.mark.parametrize(
    "shape", [Shape(), Shape(0), Shape(1, 2, 3), Shape(chain=2), Shape(0, 1, 1), Shape(searched=False)]
)
def test_a_job_without_faults_goes_all_the_way(make_world: MakeWorld, shape: Shape) -> None:
    world = make_world()
    job_id = world.submit(shape, JobRequest(question="why?"))
    for _ in range(200):
        waiting = world.broker.order()
        if not waiting:
            break
        world.deliver(waiting[0], world.workers[0])
    job = world.jobs.job(job_id)
    assert job is not None
    assert job.state == "done", world.jobs.client.hgetall(f"ramify:{{{job_id}}}:job")
    world.close()
