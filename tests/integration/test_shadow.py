"""Shadow runs on a real Redis without workers: when they start, what they may take, how they are settled."""

from __future__ import annotations

import time
from typing import Any

import pytest
import redis

from orchestrator.shadow import reading
from orchestrator.shadow.runs import Shadows
from shared.celery_app import make_app
from shared.job_store import Job, JobReader, JobStore, State, connect, new_id
from shared.job_store.ab import MOST_OFFERED, AbKeys, AbStore
from shared.job_store.keys import ACTIVE, RECENT, JobKeys, is_shadow
from shared.models import Answer, Cost, JobRequest, MergedHit, MergedPool
from shared.models.ab import OpenRun
from shared.settings import Settings, load_settings
from shared.shadow import offer
from tests.fakes.ramify_client import hit

KEYS = AbKeys()
SHADOW = {"strategy": "hybrid", "share": 1.0, "per_minute": 100, "max_open": 3, "quiet_s": 0.0}


def with_shadow(settings: Settings, **changes: object) -> Settings:
    return load_settings(redis={"url": settings.redis.url.get_secret_value()}, shadow={**SHADOW, **changes})


class Bench:
    """A job store, and the look after its shadow runs."""

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        self.client, self.settings = client, settings
        self.jobs, self.ab = JobStore(client, settings), AbStore(client, settings)
        self.shadows = Shadows(make_app(settings), self.jobs)

    def asked(self, question: str = "why?", **fields: Any) -> str:
        job_id = new_id()
        self.jobs.create([(job_id, JobRequest(question=question, **fields))])
        return job_id

    def finished(self, job_id: str, *paths: str, **fields: Any) -> Job:
        """Any job's way to its answer, without workers."""
        hits = tuple(MergedHit(**hit(n, path=path).model_dump()) for n, path in enumerate(paths or ("a.md",), 1))
        self.jobs.start_planning(job_id, "x")
        self.jobs.start_searching(job_id, [])
        self.jobs.start_merging(job_id, "x", force=True)
        self.jobs.start_summarising(job_id, MergedPool())
        job = self.jobs.job(job_id)
        assert job is not None
        values = {"question": job.request.question, "results": hits, "timings_ms": {"searching": 7.0}, **fields}
        assert self.jobs.finish(job, Answer(job_id=job_id, state="done", coverage="", **values))
        return job

    def answered(self, *paths: str, **fields: Any) -> str:
        """A live job with its answer, on offer."""
        job_id = self.asked(**fields)
        self.finished(job_id, *paths)
        self.ab.offer(job_id)
        return job_id

    def open(self) -> list[str]:
        return sorted(self.ab.open_runs())


@pytest.fixture
def bench(client: redis.Redis, settings: Settings) -> Bench:
    return Bench(client, with_shadow(settings))


def batch_lane(client: redis.Redis) -> tuple[int, int]:
    """Messages of the plan queue: interactive, batch."""
    return int(client.llen("plan")), int(client.llen("plan\x06\x165"))


def test_given_an_answered_job_when_nothing_else_is_to_be_done_then_it_is_asked_again_unseen(bench: Bench) -> None:
    live = bench.answered("a.md", tenant="t")
    before = JobReader(bench.client).answer(live)
    bench.shadows.run()
    (run_id,) = bench.open()
    job = bench.jobs.job(run_id)
    assert job is not None
    assert (job.request.strategy, job.request.tenant, job.request.question) == ("hybrid", "t", "why?")
    assert batch_lane(bench.client) == (0, 1)
    assert [status.job_id for status in JobReader(bench.client).recent()] == [live], "a run is on no list"
    assert bench.client.zscore(ACTIVE, run_id), "the sweep knows it: its deadline holds"
    assert JobReader(bench.client).answer(live) == before


def test_given_a_run_that_has_ended_when_looked_at_then_both_answers_are_kept_and_the_run_is_gone(bench: Bench) -> None:
    bench.answered("a.md", "b.md")
    bench.shadows.run()
    (run_id,) = bench.open()
    bench.finished(run_id, "b.md", "c.md", cost=Cost(embed_calls=3))
    bench.shadows.run()
    (found,) = bench.ab.comparisons()
    assert found is not None
    assert (found.live.documents, found.shadow.documents) == (("a.md", "b.md"), ("b.md", "c.md"))
    assert (found.overlap, found.live.ms, found.shadow.cost.embed_calls) == (0.5, 7.0, 3)
    assert bench.ab.counts() == {"offered": 1, "compared": 1}
    assert bench.open() == []
    assert not bench.client.keys(f"*{run_id}*"), "nothing of the run is left"


def test_given_a_run_that_is_settled_twice_when_counted_then_it_counts_once(bench: Bench) -> None:
    bench.ab.begin("run-s", OpenRun(job_id="job", began=time.time()))
    assert [bench.ab.settle("run-s", "compared") for _ in range(2)] == [True, False]
    assert bench.ab.counts()["compared"] == 1


def test_given_open_live_jobs_when_looked_at_then_no_run_starts_until_they_have_ended(bench: Bench) -> None:
    bench.answered()
    busy = bench.asked("still running")
    bench.shadows.run()
    assert (bench.open(), bench.ab.waiting()) == ([], 1)
    bench.finished(busy)
    bench.shadows.run()
    assert len(bench.open()) == 1


def test_given_a_stack_that_is_never_idle_when_allowed_then_runs_start_beside_so_many_jobs(
    client: redis.Redis, settings: Settings
) -> None:
    bench = Bench(client, with_shadow(settings, idle_below=3))
    bench.answered()
    for _ in range(2):
        bench.asked("still running")
    bench.shadows.run()
    assert len(bench.open()) == 1


def test_given_a_job_that_came_just_now_when_looked_at_then_no_run_starts_until_it_is_quiet(
    client: redis.Redis, settings: Settings
) -> None:
    bench = Bench(client, with_shadow(settings, quiet_s=60))
    job_id = bench.answered()
    bench.shadows.run()
    assert (bench.open(), bench.ab.waiting()) == ([], 1)
    client.zadd(RECENT, {job_id: time.time() - 61})
    bench.shadows.run()
    assert len(bench.open()) == 1


def test_given_limits_when_looked_at_then_no_more_runs_are_open_or_start_in_a_minute(
    client: redis.Redis, settings: Settings
) -> None:
    bench = Bench(client, with_shadow(settings, max_open=2, per_minute=3))
    for _ in range(6):
        bench.answered()
    bench.shadows.run()
    assert len(bench.open()) == 2
    for run_id in bench.open():
        bench.finished(run_id)
    bench.shadows.run()
    assert len(bench.open()) == 1, "the third of this minute"
    bench.finished(bench.open()[0])
    bench.shadows.run()
    assert (bench.open(), bench.ab.waiting(), bench.ab.counts()["compared"]) == ([], 3, 3)
    client.delete(KEYS.minute)
    bench.shadows.run()
    assert len(bench.open()) == 2, "the next minute"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [({"strategy": "hybrid"}, "skipped: same strategy"), ({"depth": 1}, "skipped: about one symbol")],
)
def test_given_a_job_that_cannot_be_compared_when_looked_at_then_it_is_counted_with_the_reason(
    bench: Bench, request_: dict[str, Any], reason: str
) -> None:
    bench.answered(**request_)
    bench.shadows.run()
    assert bench.open() == []
    assert bench.ab.counts() == {"offered": 1, reason: 1}


def test_given_a_run_that_fails_when_looked_at_then_it_is_counted_and_nothing_is_compared(bench: Bench) -> None:
    bench.answered()
    bench.shadows.run()
    job = bench.jobs.job(bench.open()[0])
    assert job is not None
    bench.jobs.stop(job, State.FAILED, "no store")
    bench.shadows.run()
    assert bench.ab.counts() == {"offered": 1, "failed: failed": 1}
    assert list(bench.ab.comparisons()) == []


def test_given_runs_that_are_lost_or_too_late_when_looked_at_then_they_are_given_up(bench: Bench) -> None:
    bench.ab.begin("gone-s", OpenRun(job_id="job", began=time.time()))
    late = bench.asked("late")
    bench.ab.begin(late, OpenRun(job_id="job", began=time.time() - 1000))
    bench.shadows.run()
    assert bench.ab.counts() == {"failed: lost": 1, "failed: too late": 1}
    assert bench.jobs.job(late) is None
    assert bench.client.zscore(ACTIVE, late) is None


def test_given_two_looks_at_a_time_when_run_then_the_second_does_nothing(bench: Bench) -> None:
    bench.answered()
    with bench.ab.only_one():
        bench.shadows.run()
    assert bench.open() == []


class FakeStep:
    def __init__(self, bench: Bench, job_id: str) -> None:
        self.jobs, self.job = bench.jobs, type("J", (), {"id": job_id})


def test_given_a_finished_shadow_run_when_offered_then_it_is_not_tried_again(bench: Bench) -> None:
    bench.answered()
    bench.shadows.run()
    offer(FakeStep(bench, bench.open()[0]))
    assert is_shadow(bench.open()[0])
    assert bench.ab.waiting() == 0


def test_given_no_shadow_when_a_job_is_answered_then_nothing_is_written(
    client: redis.Redis, settings: Settings
) -> None:
    bench = Bench(client, settings)
    offer(FakeStep(bench, "job00001"))
    assert not client.keys("ramify:*")


def test_given_a_redis_that_is_gone_when_offered_then_the_job_goes_on_and_the_log_says_so(
    client: redis.Redis, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    lost = load_settings(redis={"url": "redis://127.0.0.1:1/0", "timeout_s": 0.2}, shadow=SHADOW)
    bench = Bench(client, with_shadow(settings))
    bench.jobs = JobStore(connect(lost), lost)
    offer(FakeStep(bench, "job00001"))
    assert "job00001 is not tried" in caplog.text


def test_given_more_jobs_than_may_wait_when_offered_then_the_oldest_are_dropped_and_everything_has_a_ttl(
    bench: Bench,
) -> None:
    for n in range(MOST_OFFERED + 5):
        bench.ab.offer(f"job{n:05}")
    assert bench.ab.waiting() == MOST_OFFERED
    assert bench.ab.take() == "job00005"
    bench.answered()
    bench.shadows.run()
    bench.ab.announce()
    for key in bench.client.keys("ramify:{ab}*"):
        assert bench.client.ttl(key) > 0, key


def test_given_more_comparisons_than_are_kept_when_settled_then_the_oldest_go(
    client: redis.Redis, settings: Settings
) -> None:
    bench = Bench(client, with_shadow(settings, keep=10, idle_below=100, per_minute=100))
    for n in range(12):
        bench.answered(f"{n}.md")
        bench.shadows.run()
        bench.finished(bench.open()[0])
        bench.shadows.run()
    found = [one.live.documents[0] for one in bench.ab.comparisons() if one is not None]
    assert found == [f"{n}.md" for n in range(11, 1, -1)]


def test_given_comparisons_when_read_then_the_report_has_them_and_tells_what_it_could_not_read(bench: Bench) -> None:
    assert reading.read_report(bench.jobs).strategy is None
    bench.answered("a.md")
    bench.shadows.run()
    bench.finished(bench.open()[0], "a.md")
    bench.answered()
    bench.shadows.run()
    bench.client.rpush(KEYS.runs, b"damaged", b"")
    found = reading.read_report(bench.jobs)
    assert (found.strategy, found.share, found.open, found.waiting) == ("hybrid", 1.0, 1, 0)
    assert (found.trials[0].rows[0].n, found.trials[0].rows[0].same_first) == (1, 1.0)
    assert found.warnings == ("2 of 3 comparisons cannot be read (another release wrote them) and are left out.",)


def test_given_a_reset_when_asked_then_everything_is_forgotten_and_open_runs_end(bench: Bench) -> None:
    bench.answered()
    bench.shadows.run()
    bench.finished(bench.open()[0])
    bench.answered()
    bench.shadows.run()
    (run_id,) = bench.open()
    assert reading.reset(bench.jobs) == 1
    assert bench.jobs.job(run_id) is None
    assert (bench.open(), list(bench.ab.comparisons()), bench.ab.counts(), bench.ab.waiting()) == ([], [], {}, 0)
    assert not bench.client.exists(JobKeys(run_id).job)
