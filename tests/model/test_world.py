"""The simulated world itself: a job without faults goes all the way."""

from __future__ import annotations

import pytest

from shared.jobs.keys import JobKeys
from shared.jobs.reader import JobReader
from shared.models import JobRequest
from tests.model.conftest import MakeWorld
from tests.model.fibers import UNHEARD
from tests.model.shapes import Shape


@pytest.mark.parametrize(
    "shape",
    [
        Shape(),
        Shape(0),
        Shape(1, 2, 3),
        Shape(chain=2),
        Shape(0, 1, 1),
        Shape(searched=False),
        Shape(shards=2),
        Shape(shards=2, columns=True),
    ],
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


@pytest.mark.parametrize(("shape", "reranked"), [(Shape(0), False), (Shape(0, shards=1), False), (Shape(1), True)])
def test_only_what_several_leaves_found_is_reranked_against_the_question(
    make_world: MakeWorld, shape: Shape, reranked: bool
) -> None:
    world = make_world()
    job_id, ran = world.submit(shape, JobRequest(question="why?")), []
    while waiting := world.broker.order():
        ran.append(world.broker.waiting[waiting[0]].task)
        world.deliver(waiting[0], world.workers[0])
    assert ("rerank.root" in ran) is reranked
    assert ran[-1] == "merge.summarise"
    job, answer = world.jobs.job(job_id), JobReader(world.wire).answer(job_id)
    assert job is not None
    assert job.state == "done"
    assert answer is not None
    assert answer.results
    world.close()


def test_a_begin_that_was_carried_out_but_not_heard_of_leaves_no_mark_of_a_worker_that_lives(
    make_world: MakeWorld,
) -> None:
    """Such a mark would say for ever that somebody is at it: the job would stand still until its deadline."""
    world = make_world()
    job_id = world.submit(Shape(), JobRequest(question="why?"))
    (number,) = world.broker.order()
    fiber = world.deliver(number, world.workers[0], 0)
    fiber.fault = UNHEARD
    world.resume(fiber)
    assert world.wire.hkeys(JobKeys(job_id).work) == [b"busy:plan.job"]
    world.advance(1.0)
    assert world.wire.hkeys(JobKeys(job_id).work) == []
    world.advance(5.0)
    world.look()
    assert len(world.broker.order()) == 1
    world.close()
