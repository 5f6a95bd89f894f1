"""How long a job may wait, and when its own time begins, on a real Redis with a clock that is set by hand."""

from __future__ import annotations

import pytest
import redis

from shared.jobs import JobReader, JobStore, State, new_id
from shared.jobs.admission import pace
from shared.jobs.keys import ACTIVE, AdmissionKeys, JobKeys
from shared.models import JobRequest, Lane
from shared.settings import Settings, load_settings
from tests.fakes.walked_jobs import enter
from tests.model.checks import Checks


class HandClock:
    at = 1_800_000_000.0

    def now(self) -> float:
        return self.at


class Line:
    """Jobs of one tenant, and a window of two: one at a time is let in."""

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        self.client, self.clock = client, HandClock()
        changed = settings.model_copy(update={"lanes": settings.lanes.model_copy(update={"under_way": 2})})
        self.jobs = JobStore(client, changed, clock=self.clock)

    def submit(self, **fields: object) -> str:
        job_id = new_id()
        request = JobRequest.model_validate({"question": "why?", "lane": Lane.BATCH, **fields})
        assert [one.result for one in self.jobs.enqueue([(job_id, request)])] == [1]
        return job_id

    def admit(self) -> list[str]:
        found = [job_id for job_id, _ in self.jobs.admit()]
        Checks(self.client).lines(Lane.BATCH, ["default"], window=2)
        return found

    def of(self, job_id: str, *names: str) -> list[str]:
        return [(value or b"").decode() for value in self.client.hmget(JobKeys(job_id).job, list(names))]

    def end(self, job_id: str) -> None:
        job = self.jobs.job(job_id)
        assert job is not None
        assert self.jobs.stop(job, State.CANCELLED, "enough")


@pytest.fixture
def line(client: redis.Redis, settings: Settings) -> Line:
    return Line(client, settings)


def test_the_time_of_a_job_begins_with_its_turn(line: Line) -> None:
    first, second = line.submit(deadline_s=100, max_seconds=40), line.submit(deadline_s=100)
    assert line.of(second, "deadline_at", "deadline_s", "waits_until") == ["", "100", f"{line.clock.at + 259_200:.3f}"]
    assert JobReader(line.client).status(second).deadline_at is None
    line.client.expire(JobKeys(second).job, 100)
    assert line.admit() == [first]
    line.clock.at += 5_000
    line.end(first)
    waiting = line.jobs.job(second)
    assert waiting is not None
    assert waiting.remaining() == pytest.approx(100, abs=1), "waiting takes none of it"
    assert line.admit() == [second]
    assert line.of(first, "deadline_at") == [f"{line.clock.at - 5_000 + 40:.3f}"]
    assert line.of(second, "deadline_at", "admitted_at") == [f"{line.clock.at + 100:.3f}", f"{line.clock.at:.6f}"]
    assert line.client.ttl(JobKeys(second).job) > 600_000, "it lives as long after its turn as any other"
    line.clock.at += 30
    job = line.jobs.job(second)
    assert job is not None
    assert job.remaining() == pytest.approx(70, abs=1)
    assert job.leaf_reserve == 15


def test_seconds_of_a_budget_are_counted_from_the_turn(line: Line) -> None:
    first, second = line.submit(max_seconds=40), line.submit(max_seconds=40)
    line.admit()
    line.clock.at += 1_000
    budget = JobReader(line.client).status(second).budget
    assert budget is not None
    assert (budget.max_seconds, budget.seconds) == (40, 0)
    line.end(first)
    line.admit()
    line.clock.at += 7
    line.end(second)
    budget = JobReader(line.client).status(second).budget
    assert budget is not None
    assert budget.seconds == pytest.approx(7)


def test_what_is_overdue_takes_no_place_and_expires_unplanned(line: Line) -> None:
    batch = new_id()
    line.jobs.batches.open(batch)
    runs = line.submit()
    overdue = [new_id() for _ in range(300)]
    request = JobRequest(question="why?", lane=Lane.BATCH, queue_limit_s=60)
    enter(line.jobs, batch, [(job_id, request) for job_id in overdue])
    in_time = line.submit(queue_limit_s=3600)
    assert line.admit() == [runs]
    line.clock.at += 61
    line.end(runs)
    assert line.admit() == [in_time], "more of them than one call of the script looks at"
    names = ("state", "error", "planning_at", "admitted_at", "deadline_at")
    reason = "it waited for 60 s, all that queue_limit_s allows, and its turn had not come"
    assert {tuple(line.of(job_id, *names)) for job_id in overdue} == {("expired", reason, "", "", "")}
    assert line.jobs.batches.status(batch).expired == 300
    assert line.client.zcard(ACTIVE) == 1


def test_what_ended_is_gone_or_cannot_be_read_takes_no_place(line: Line) -> None:
    ended, gone, damaged, sound = (line.submit() for _ in range(4))
    line.client.hset(JobKeys(ended).job, "state", "cancelled")
    line.client.delete(JobKeys(gone).job, JobKeys(damaged).job)
    line.client.set(JobKeys(damaged).job, "no hash")
    assert line.admit() == [sound]
    assert line.jobs.admission.under_way().keys() == {sound}


@pytest.mark.parametrize("value", [b"", b"soon", b"nan", b"\xff"])
@pytest.mark.parametrize("name", ["waits_until", "deadline_s", "created_at"])
def test_a_damaged_limit_costs_nobody_else_a_turn(line: Line, name: str, value: bytes) -> None:
    first, second = line.submit(), line.submit()
    line.client.hset(JobKeys(first).job, name, value)
    assert line.admit() == [first]
    line.client.hset(JobKeys(first).job, "state", "failed")
    line.jobs.release([first])
    assert line.admit() == [second]


def test_the_limit_of_the_settings_never_outlives_the_keys(client: redis.Redis, settings: Settings) -> None:
    jobs = load_settings(jobs={"ttl_s": 1000, "queue_limit_s": 5000}).jobs
    line = Line(client, settings.model_copy(update={"jobs": jobs}))
    for job_id in (line.submit(), line.submit(queue_limit_s=9000)):
        assert line.of(job_id, "waits_until") == [f"{line.clock.at + 500:.3f}"]
    assert load_settings().jobs.queue_limit_of(None) < load_settings().jobs.ttl_s


NOW = 1_000.0


@pytest.mark.parametrize(
    ("ends", "busy", "expected"),
    [
        ([], True, None),
        ([950, 940, 930, -920], True, None),
        ([990, 980, 970, 960, -950], True, 4 / 50),
        ([990, 980, 970, 960, -950], False, 4 / 40),
        ([990, 980, -970, 300, 290, -280], True, 4 / 50),
        ([990, 980, 970, 960, 950], True, 4 / 50),
    ],
    ids=["none", "too few", "busy", "idle now", "a night between", "the first is only a beginning"],
)
def test_the_pace_is_of_the_time_in_which_there_was_work(ends: list[float], busy: bool, expected: float | None) -> None:
    assert pace(ends, NOW, busy=busy) == (None if expected is None else pytest.approx(expected))


def test_a_lane_that_was_idle_over_night_keeps_its_pace(line: Line) -> None:
    """Else the first batch of the morning would be told that its turns come too late."""

    def work(count: int) -> None:
        ids = [line.submit() for _ in range(count)]
        for job_id in ids:
            assert line.admit() == [job_id]
            line.clock.at += 2
            line.end(job_id)

    work(5)
    line.clock.at += 50_000
    last = [line.submit() for _ in range(3)][-1]
    line.admit()
    place = line.jobs.admission.position(last, Lane.BATCH, "default")
    assert place.ends_per_s == pytest.approx(0.5)
    assert place.turn_s == pytest.approx(4)
    assert float(line.client.lindex(AdmissionKeys("batch").ends, 0) or 0) == -line.clock.at
