"""What a step does with its own failures, and with those of Redis and the broker, on a real Redis without workers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from kombu.exceptions import OperationalError

from shared.celery_app import make_app
from shared.contract import Message, TaskName
from shared.errors import PermanentError
from shared.job_store import JobStore, State, new_id
from shared.models import JobRequest
from shared.settings import Settings
from shared.steps import Step, Steps, fail_job


@pytest.fixture
def ran(settings: Settings) -> Callable[[Exception], State]:
    """Runs a planning step that raises; the state of its job afterwards."""
    app = make_app(settings)
    steps = Steps(app)

    def run(error: Exception) -> State:
        def body(_: Step) -> None:
            raise error

        steps(TaskName.PLAN_JOB, on_error=fail_job)(body)
        job_id = new_id()
        steps.jobs.create([(job_id, JobRequest(question="why?"))])
        steps.jobs.start_planning(job_id, "x")
        try:
            app.tasks["plan.job"](Message(job_id=job_id).wire())
        finally:
            found = steps.jobs.job(job_id)
            assert found is not None
            assert not steps.jobs.work.of(job_id) or steps.jobs.work.of(job_id)["plan.job"].busy is None, "it has ended"
            state.append(found.state)
        return found.state

    state: list[State] = []
    run.state = state  # type: ignore[attr-defined]
    return run


def test_given_a_fault_of_its_own_when_run_then_the_job_fails_with_the_reason(
    ran: Callable[[Exception], State], settings: Settings, client: redis.Redis
) -> None:
    assert ran(PermanentError("no such model")) is State.FAILED
    assert JobStore(client, settings).due() == []


@pytest.mark.parametrize("error", [OperationalError("no broker"), redis.ConnectionError("gone")])
def test_given_a_broker_or_redis_that_is_away_when_run_then_the_job_is_left_for_the_reaper(
    ran: Callable[[Exception], State], error: Exception
) -> None:
    with pytest.raises(type(error)):
        ran(error)
    assert ran.state == [State.PLANNING]  # type: ignore[attr-defined]
