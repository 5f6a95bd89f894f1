"""A step whose server fails, in jobs that wait for servers and in others, on a real Redis without workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import redis

from shared.contract import TaskMessage
from shared.errors import DeadlineError, PermanentError, ReplyError, TransientError
from shared.jobs import JobReader, State, new_id
from shared.jobs.keys import JobKeys
from shared.models import Cost, JobRequest, Lane
from shared.models.degraded import OnOutage
from shared.models.status import Postponement
from shared.providers.fallbacks import fell_back
from shared.providers.gates import GateError
from shared.providers.metering import BudgetError, carried, paid
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.task_run import TaskRegistry, TaskRun, fail_job

TASK = SimpleNamespace(name="plan.job", request=SimpleNamespace(id="task"))


class Run:
    """One planning step."""

    def __init__(self, settings: Settings, **fields: object) -> None:
        self.registry, self.job_id = TaskRegistry(make_app(settings)), new_id()
        self.client = self.registry.jobs.client
        request = JobRequest.model_validate({"question": "why?", "lane": Lane.BATCH, "deadline_s": 600, **fields})
        self.registry.jobs.enqueue([(self.job_id, request)])
        self.registry.jobs.admit()
        self.registry.jobs.start_planning(self.job_id, "task")

    def __call__(self, error: BaseException | None = None, body: object = None) -> dict[str, str]:
        def fails(_: TaskRun) -> None:
            assert error is not None
            fell_back("llm", error)

        return self.registry._run(TASK, TaskMessage(job_id=self.job_id).wire(), body or fails, fail_job)

    @property
    def postponed(self) -> Postponement | None:
        item = self.registry.jobs.work.items(self.job_id).get("plan.job")
        return item.postponed if item else None

    @property
    def degraded(self) -> tuple[str, ...]:
        return JobReader(self.client).status(self.job_id).degraded

    def again(self) -> None:
        """As the reaper grants it."""
        item = self.registry.jobs.work.items(self.job_id)["plan.job"]
        assert self.registry.jobs.redrive(self.job_id, State.PLANNING, 1, "", [("plan.job", "", item.sent_raw)])


@pytest.mark.parametrize(
    ("fields", "waits"),
    [
        ({}, True),
        ({"lane": Lane.INTERACTIVE}, False),
        ({"on_outage": OnOutage.DEGRADE}, False),
        ({"lane": Lane.INTERACTIVE, "on_outage": "wait"}, True),
    ],
)
def test_given_a_server_that_fails_when_the_job_waits_for_servers_then_the_step_is_postponed_and_else_degraded(
    client: redis.Redis, settings: Settings, fields: dict[str, object], waits: bool
) -> None:
    run = Run(settings, **fields)
    reply = run(TransientError("the LLM server answered 500"))
    assert (run.postponed is not None) == waits
    assert run.degraded == (() if waits else ("llm_unavailable",))
    assert ("postponed" in reply) == waits, "Flower shows it"
    assert run.registry.jobs.job(run.job_id).state is State.PLANNING


@pytest.mark.parametrize(
    "error", [BudgetError("none"), DeadlineError("late"), ReplyError("no list"), PermanentError("401")]
)
def test_given_a_failure_that_will_not_pass_when_the_job_waits_for_servers_then_it_goes_on_without(
    client: redis.Redis, settings: Settings, error: Exception
) -> None:
    run = Run(settings)
    run(error)
    assert run.postponed is None
    assert len(run.degraded) == 1


def test_given_settings_that_say_otherwise_when_a_server_fails_then_the_lane_decides(
    client: redis.Redis, settings: Settings
) -> None:
    lanes = settings.lanes.model_copy(update={"on_outage_batch": OnOutage.DEGRADE})
    run = Run(settings.model_copy(update={"lanes": lanes}))
    run(TransientError("500"))
    assert run.postponed is None


def test_given_a_step_that_fails_again_and_again_when_postponed_then_it_waits_longer_each_time_up_to_a_minute(
    client: redis.Redis, settings: Settings
) -> None:
    run, waits = Run(settings), []
    for number in range(1, 8):
        run(TransientError("500"))
        found = run.postponed
        assert found is not None
        assert found.waits == number
        waits.append(found.until - run.registry.jobs.clock.now())
        run.again()
        assert run.postponed is None, "it is sent"
    assert waits[0] < 4.1
    assert 28 < waits[6] < 60.1
    events = [event["type"] for event in run.registry.jobs.events(run.job_id, 100)]
    assert events.count("postponed") == 1, "a night of them would push out all others"
    assert events.count("redriven") == 0, "nothing was lost"


def test_given_a_server_that_says_when_it_may_be_asked_again_when_postponed_then_not_before(
    client: redis.Redis, settings: Settings
) -> None:
    run = Run(settings)
    error = GateError("the LLM server is left alone", 90.0)
    error.provider = "llm"
    run(error)
    found = run.postponed
    assert found is not None
    assert 89 < found.until - run.registry.jobs.clock.now() < 90.5
    assert (found.provider, found.why) == ("llm", "the LLM server is left alone")


@pytest.mark.parametrize(("deadline_s", "reserve_s"), [(600, 60), (40, 18)])
def test_given_a_job_that_waits_when_its_last_quarter_or_minute_begins_then_it_goes_on_without(
    client: redis.Redis, settings: Settings, deadline_s: int, reserve_s: int
) -> None:
    run = Run(settings, deadline_s=deadline_s)
    run(TransientError("500", retry_after=500.0))
    found, job = run.postponed, run.registry.jobs.job(run.job_id)
    assert found is not None
    assert job is not None
    assert job.deadline_at is not None
    assert abs(found.goes_on_at - (job.deadline_at - reserve_s)) < 0.5
    assert found.until <= found.goes_on_at
    run.again()
    passed = deadline_s - reserve_s
    times = {"created_at": job.created_at - passed, "deadline_at": job.deadline_at - passed}
    client.hset(JobKeys(run.job_id).job, mapping=times)
    run(TransientError("500"))
    assert run.postponed is None
    assert run.degraded == ("llm_unavailable",)


def test_given_a_step_that_is_postponed_when_its_message_comes_once_more_then_it_does_nothing(
    client: redis.Redis, settings: Settings
) -> None:
    run, ran = Run(settings), []
    run(TransientError("500"))
    assert run(body=ran.append)["postponed"] == "500"
    assert not ran
    run.again()
    run(body=ran.append)
    assert len(ran) == 1


def test_given_calls_that_were_made_when_the_step_is_postponed_then_they_are_booked_once_and_its_reasons_are_not(
    client: redis.Redis, settings: Settings
) -> None:
    run = Run(settings)

    def body(task: TaskRun) -> None:
        for tokens, booked in ((10, True), (20, False)):
            with paid("llm", "m") as call:
                call.next_try()
                call.settle(tokens, 1)
            if booked:
                task.annotate(Cost(llm_calls=1, llm_tokens_in=tokens, llm_tokens_out=1))
        fell_back("llm", ReplyError("no list"))
        with paid("embedding", "e") as call:
            call.next_try()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(carried(lambda: fell_back("embedding", TransientError("500")))).result()

    run(body=body)
    status = JobReader(client).status(run.job_id)
    assert status.cost == Cost(llm_calls=2, llm_tokens_in=30, llm_tokens_out=2, embed_calls=1)
    assert status.degraded == ()
    assert run.postponed is not None
    assert run.postponed.provider == "embedding"


def test_given_a_fallback_that_catches_every_error_when_its_server_fails_then_the_step_is_postponed_all_the_same(
    client: redis.Redis, settings: Settings
) -> None:
    run = Run(settings)

    def body(_: TaskRun) -> None:
        try:
            fell_back("llm", TransientError("500"))
        except Exception:  # noqa: BLE001 - as a plugin's stage is guarded
            raise AssertionError("it went on without") from None

    run(body=body)
    assert run.postponed is not None


def test_given_a_server_that_nothing_stands_in_for_when_it_fails_then_the_job_waits_for_it_too(
    client: redis.Redis, settings: Settings
) -> None:
    def body(_: TaskRun) -> None:
        raise TransientError("Qdrant at h answered 503")

    for fields, state in (({}, State.PLANNING), ({"lane": Lane.INTERACTIVE}, State.FAILED)):
        run = Run(settings, **fields)
        run(body=body)
        assert run.registry.jobs.job(run.job_id).state is state


def test_given_a_job_that_has_ended_when_a_step_of_it_is_to_wait_then_nothing_is_noted(
    client: redis.Redis, settings: Settings
) -> None:
    run = Run(settings)

    def body(task: TaskRun) -> None:
        task.jobs.stop(task.job, State.CANCELLED, "by the caller")
        fell_back("llm", TransientError("500"))

    run(body=body)
    assert run.postponed is None


def test_given_marks_that_were_written_by_hand_when_read_then_the_item_is_not_postponed(
    client: redis.Redis, settings: Settings
) -> None:
    run = Run(settings)
    for value in ("soon", "1 soon llm", "", "nan 1 llm", "1 inf llm"):
        client.hset(JobKeys(run.job_id).work, "postponed:plan.job", value)
        assert run.postponed is None
