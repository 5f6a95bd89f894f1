"""What a step does with its own failures, and with those of Redis and the broker, on a real Redis without workers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import redis
from kombu.exceptions import OperationalError

from shared.contract import TaskMessage
from shared.errors import DeadlineError, PermanentError
from shared.jobs import State, new_id
from shared.models import JobRequest
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.task_run import TaskRegistry, TaskRun, fail_job

TASK = SimpleNamespace(name="plan.job", request=SimpleNamespace(id="task"))


class Run:
    """One planning step that raises."""

    def __init__(self, settings: Settings) -> None:
        self.registry, self.job_id = TaskRegistry(make_app(settings)), new_id()
        self.registry.jobs.enqueue([(self.job_id, JobRequest(question="why?"))])
        self.registry.jobs.start_planning(self.job_id, "task")

    def __call__(self, error: Exception) -> None:
        def body(_: TaskRun) -> None:
            raise error

        self.registry._run(TASK, TaskMessage(job_id=self.job_id).wire(), body, fail_job)

    @property
    def state(self) -> State:
        job = self.registry.jobs.job(self.job_id)
        assert job is not None
        return job.state

    def marked(self) -> bool:
        item = self.registry.jobs.work.items(self.job_id).get("plan.job")
        return item is not None and item.busy is not None


def test_given_a_fault_of_its_own_when_run_then_the_job_fails(client: redis.Redis, settings: Settings) -> None:
    run = Run(settings)
    run(PermanentError("no such model"))
    assert run.state is State.FAILED
    assert not run.marked()


@pytest.mark.parametrize("error", [OperationalError("no broker"), redis.ConnectionError("gone")])
def test_given_a_broker_or_redis_that_is_away_when_run_then_the_job_is_left_for_the_reaper(
    client: redis.Redis, settings: Settings, error: Exception
) -> None:
    run = Run(settings)
    with pytest.raises(type(error)):
        run(error)
    assert run.state is State.PLANNING
    assert not run.marked(), "nobody is at it any more: it may be sent again"


def test_given_a_leaf_whose_time_is_up_when_asked_for_it_then_the_error_says_what_was_not_done() -> None:
    job = SimpleNamespace(remaining=lambda reserve: 3.0 - reserve, leaf_reserve=1.0)
    run = TaskRun(task=None, jobs=None, job=job, message=None)
    assert run.leaf_seconds("searched") == 2.0
    job.leaf_reserve = 3.0
    with pytest.raises(DeadlineError, match=r"^the job's time was up before this leaf was reranked$"):
        run.leaf_seconds("reranked")
