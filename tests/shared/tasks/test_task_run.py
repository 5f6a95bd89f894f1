"""What a step does with its own failures, and with those of Redis and the broker, on a real Redis without workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import redis
from kombu.exceptions import OperationalError

from shared.contract import TaskMessage
from shared.errors import DamagedError, DeadlineError, PermanentError, ReplyError, TransientError
from shared.jobs import JobReader, State, new_id
from shared.jobs.keys import ACTIVE, JobKeys
from shared.models import Cost, JobRequest, SearchResult
from shared.models.degraded import Degradation
from shared.providers.fallbacks import Helper, fell_back, reason_for
from shared.providers.metering import BudgetError, carried
from shared.settings import Settings
from shared.settings.broker import BrokerSettings
from shared.tasks.app import make_app, outcome_of_run
from shared.tasks.task_run import TaskRegistry, TaskRun, fail_job
from tests.fakes.walked_jobs import WalkedJob

TASK = SimpleNamespace(name="plan.job", request=SimpleNamespace(id="task"))


class Run:
    """One planning step that raises."""

    def __init__(self, settings: Settings) -> None:
        self.registry, self.job_id = TaskRegistry(make_app(settings)), new_id()
        self.registry.jobs.enqueue([(self.job_id, JobRequest(question="why?"))])
        self.registry.jobs.start_planning(self.job_id, "task")

    def __call__(self, error: Exception) -> dict[str, str]:
        def body(_: TaskRun) -> None:
            raise error

        return self.registry._run(TASK, TaskMessage(job_id=self.job_id).wire(), body, fail_job)

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
    told = run(PermanentError("no such model"))
    assert run.state is State.FAILED
    assert told == {"node": "", "failed": "no such model"}, "as Flower shows it"
    assert outcome_of_run("SUCCESS", told) == "failed"
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


def test_given_what_a_step_went_on_without_when_it_ends_then_the_job_says_why_and_where(
    client: redis.Redis, settings: Settings
) -> None:
    run = Run(settings)

    def body(task: TaskRun) -> None:
        fell_back("llm", TransientError("status 500"))
        task.annotate(warnings=["split by rules"])
        with ThreadPoolExecutor(1) as pool:
            pool.submit(carried(lambda: fell_back("llm", BudgetError("none left")))).result()

    for _ in range(2):
        run.registry._run(TASK, TaskMessage(job_id=run.job_id).wire(), body, fail_job)
    fell_back("embedding", TransientError("noted nowhere: no task runs here"))
    found = JobReader(client).status(run.job_id)
    assert found.degraded == ("llm_unavailable", "over_budget")
    assert found.degraded_at == {"plan.job": found.degraded}
    events = [event for event in run.registry.jobs.events(run.job_id, 100) if event["type"] == "degraded"]
    assert events == [{"type": "degraded", "item": "plan.job", "reason": code} for code in found.degraded]


@pytest.mark.parametrize(
    ("helper", "error", "reason"),
    [
        ("llm", TransientError("500"), Degradation.LLM_UNAVAILABLE),
        ("llm", ReplyError("no list"), Degradation.LLM_REPLY_UNUSABLE),
        ("embedding", PermanentError("401"), Degradation.EMBEDDING_UNAVAILABLE),
        ("rerank", ReplyError("no scores"), Degradation.RERANK_UNAVAILABLE),
        ("store", DeadlineError("late"), Degradation.OUT_OF_TIME),
        ("rerank", BudgetError("none left"), Degradation.OVER_BUDGET),
    ],
)
def test_given_a_helpers_failure_when_named_then_its_code_says_what_kind_it_was(
    helper: Helper, error: Exception, reason: Degradation
) -> None:
    assert reason_for(helper, error) is reason


@pytest.mark.parametrize(
    ("field", "value"), [("request", "{"), ("request", b"\xff"), ("state", "x!"), ("deadline_s", "soon")]
)
def test_given_a_job_that_cannot_be_read_when_run_then_it_is_set_aside_and_no_mark_stays(
    client: redis.Redis, settings: Settings, field: str, value: str | bytes
) -> None:
    run = Run(settings)
    client.hset(JobKeys(run.job_id).job, field, value)
    run(PermanentError("not reached"))
    assert client.hgetall(JobKeys(run.job_id).work) == {}
    aside = run.registry.jobs.damaged.get(run.job_id)
    assert aside is not None
    assert field in aside.reason


def test_given_marks_that_are_no_hash_when_run_then_the_job_is_set_aside_and_other_ends_are_noted(
    client: redis.Redis, settings: Settings
) -> None:
    broken, other = Run(settings), Run(settings)
    client.set(JobKeys(broken.job_id).work, "x")
    broken(PermanentError("not reached"))
    aside = broken.registry.jobs.damaged.get(broken.job_id)
    assert aside is not None
    assert "work is a string, not a hash" in aside.reason
    broken.job_id = other.job_id
    broken(PermanentError("no such model"))
    assert not broken.marked(), "the same process notes the end of other work"


def test_given_data_that_are_damaged_in_the_middle_when_run_then_the_failure_is_recorded(
    client: redis.Redis, settings: Settings
) -> None:
    run = Run(settings)
    run(redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"))
    assert run.state is State.FAILED
    assert not run.marked()


def test_given_data_of_a_newer_release_when_run_then_the_job_is_left_as_it_is(
    client: redis.Redis, settings: Settings
) -> None:
    run = Run(settings)
    run(DamagedError("its route cannot be read", newer=True))
    assert run.state is State.PLANNING
    assert run.registry.jobs.damaged.ids() == [run.job_id]
    assert not run.marked()


def test_a_search_marks_and_hands_over_in_two_scripts_with_what_it_has_to_say(
    client: redis.Redis, settings: Settings
) -> None:
    registry = TaskRegistry(make_app(settings))
    walked = WalkedJob(registry.jobs, new_id())
    registry.jobs.enqueue([(walked.id, JobRequest(question="why?"))])
    walked.to("searching")
    task = SimpleNamespace(name="search.leaf", request=SimpleNamespace(id="task", chain=None, chord=None))
    seen = []

    def search(run: TaskRun) -> None:
        seen.append(run.node().id)
        run.put_candidates(SearchResult(mode="bm25"), Cost(embed_calls=2), ["slow"])

    def scripts() -> int:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])

    node_id = next(iter(registry.jobs.leaf_states(walked.id)))
    message = TaskMessage(job_id=walked.id, node_id=node_id).wire()
    registry._run(task, message, search, fail_job)  # loads the scripts; a second delivery does nothing
    assert seen == [node_id]
    assert registry.jobs.leaf_states(walked.id)[node_id] == "searched"
    assert registry.jobs.work.items(walked.id)[node_id].busy is None
    status = JobReader(client).status(walked.id)
    assert (status.cost.embed_calls, status.warnings) == (2, ("slow",))
    client.hset(JobKeys(walked.id).leaves, node_id, "pending")
    before = scripts()
    registry._run(task, message, search, fail_job)
    assert scripts() - before == 2


def chained(registry: TaskRegistry, message: dict[str, object]) -> tuple[dict[str, str], list[object]]:
    """What a search returns for this message, and what is left of its chain."""
    request = SimpleNamespace(id="task", chain=[{"task": "rerank.leaf"}], chord=None)
    task = SimpleNamespace(name="search.leaf", request=request)
    return registry._run(
        task, message, lambda run: run.put_candidates(SearchResult(mode="bm25")), fail_job
    ), request.chain


def test_given_a_message_of_a_version_that_is_not_read_then_nothing_follows_it_and_the_job_is_as_it_was(
    client: redis.Redis, settings: Settings
) -> None:
    registry = TaskRegistry(make_app(settings))
    walked = WalkedJob(registry.jobs, new_id())
    registry.jobs.enqueue([(walked.id, JobRequest(question="why?"))])
    walked.to("searching")
    before = client.hgetall(JobKeys(walked.id).work), JobReader(client).status(walked.id)

    told, left = chained(registry, {"v": 2, "job_id": walked.id, "node_id": "0.0"})

    assert "version 2" in told["refused"]
    assert outcome_of_run("SUCCESS", told) == "refused"
    assert left == [], "the rerank would find no candidates"
    after = client.hgetall(JobKeys(walked.id).work), JobReader(client).status(walked.id)
    assert after == before, "the reaper sends it again; the job says nothing of it"
    soon = registry.jobs.clock.now() + 6.0
    assert client.zscore(ACTIVE, walked.id) < soon, "and looks at the job soon"


def test_given_a_field_of_a_newer_release_then_the_message_is_read_without_it(
    client: redis.Redis, settings: Settings
) -> None:
    registry = TaskRegistry(make_app(settings))
    walked = WalkedJob(registry.jobs, new_id())
    registry.jobs.enqueue([(walked.id, JobRequest(question="why?"))])
    walked.to("searching")

    told, left = chained(registry, {"v": 1, "job_id": walked.id, "node_id": "0.0", "colour": "red"})

    assert told == {"node": "0.0"}
    assert left
    assert registry.jobs.leaf_states(walked.id)["0.0"] == "searched"


def test_given_a_message_that_rabbitmq_delivers_again_when_its_work_was_begun_then_the_reaper_is_left_to_it(
    client: redis.Redis, settings: Settings
) -> None:
    over = settings.model_copy(update={"broker": BrokerSettings(url="amqp://127.0.0.1:1")})
    ran, rest = list[str](), [{"task": "next"}]

    def deliver(on: Settings, job_id: str) -> dict[str, str]:
        info = {"priority": 0, "redelivered": True}
        request = SimpleNamespace(id="task", delivery_info=info, chain=rest, chord=None)
        task = SimpleNamespace(name="plan.job", request=request)
        registry = TaskRegistry(make_app(on))
        return registry._run(task, TaskMessage(job_id=job_id).wire(), lambda run: ran.append(run.job.id), fail_job)

    run, fresh = Run(settings), Run(settings)
    work = run.registry.jobs.work
    work.begin(run.job_id, "plan.job", "plan.job", work.attempt("plan.job"))
    assert "skipped" in deliver(over, run.job_id)
    assert rest == [], "nor does what follows run: whoever began it sends that"
    assert run.marked(), "it is still at whoever began it"
    assert "skipped" not in deliver(settings, run.job_id), "Redis gives back only what a worker has put back"
    assert "skipped" not in deliver(over, fresh.job_id), "it was never begun"
    assert ran == [run.job_id, fresh.job_id]
