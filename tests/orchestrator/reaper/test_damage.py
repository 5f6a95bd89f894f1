"""What becomes of jobs that the reaper cannot read: on a real Redis without workers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
import redis

from orchestrator.reaper.damage import GIVE_UP_S, LOOK_AGAIN_S
from shared.jobs import State
from shared.jobs.keys import ACTIVE, AdmissionKeys, JobKeys
from shared.settings import Settings
from tests.orchestrator.reaper.test_reaper import NODES, Bench


@pytest.fixture
def bench(client: redis.Redis, settings: Settings) -> Iterator[Bench]:
    bench = Bench(client, settings)
    yield bench
    bench.app.close()


def state(bench: Bench, job_id: str) -> str:
    return (bench.client.hget(JobKeys(job_id).job, "state") or b"").decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [("state", b"\xff\xfe"), ("state", "paused"), ("lane", "bulk"), ("tenant", ""), ("deadline_at", "soon")],
)
def test_one_that_cannot_be_read_stops_no_other_and_gives_its_place_back(
    bench: Bench, field: str, value: str | bytes
) -> None:
    broken, whole = bench.job(), bench.job()
    bench.client.hset(JobKeys(broken.id).job, field, value)
    bench.look()
    assert bench.sent() == {"search": 1, "plan": 1}, "what the other one misses"
    aside = bench.jobs.damaged.get(broken.id)
    assert aside is not None
    assert f"its field {field} is" in aside.reason
    assert list(bench.jobs.admission.under_way()) == [whole.id]
    assert (bench.client.zscore(ACTIVE, broken.id) or 0) >= bench.clock.at + LOOK_AGAIN_S - 1
    assert bench.jobs.damaged.counts() == (1, 1)


def test_a_key_of_another_type_is_named_and_costs_its_job_only(bench: Bench) -> None:
    broken, _ = bench.job(), bench.job()
    bench.client.delete(JobKeys(broken.id).leaves)
    bench.client.set(JobKeys(broken.id).leaves, "x")
    bench.look()
    assert bench.sent() == {"search": 1, "plan": 1}
    aside = bench.jobs.damaged.get(broken.id)
    assert aside is not None
    assert "leaves is a string, not a hash" in aside.reason


def test_one_that_is_mended_goes_on_in_a_place_of_its_own(bench: Bench) -> None:
    job = bench.job()
    bench.client.hset(JobKeys(job.id).job, "lane", "bulk")
    bench.look()
    assert bench.sent() == {}
    bench.client.hset(JobKeys(job.id).job, "lane", "interactive")
    bench.clock.at += LOOK_AGAIN_S + 1
    bench.look()
    assert bench.jobs.damaged.get(job.id) is None
    assert list(bench.jobs.admission.under_way()) == [job.id]
    assert bench.sent() == {"search": 1, "plan": 1}


def test_what_nobody_can_read_fails_after_a_while_and_what_a_newer_release_may_know_is_left_alone(bench: Bench) -> None:
    garbled, newer = bench.job(), bench.job()
    bench.client.hset(JobKeys(garbled.id).job, "state", "x!")
    bench.client.hset(JobKeys(newer.id).job, "state", "paused")
    before = bench.client.hgetall(JobKeys(newer.id).job)
    for _ in range(4):
        bench.look()
        bench.clock.at += GIVE_UP_S + 1
    assert state(bench, garbled.id) == "failed"
    error = (bench.client.hget(JobKeys(garbled.id).job, "error") or b"").decode()
    assert error.startswith("what is stored of the job cannot be read: its field state is 'x!'")
    assert bench.client.hgetall(JobKeys(newer.id).job) == before
    assert bench.jobs.damaged.ids() == [newer.id]


def test_many_of_them_do_not_close_a_lane(bench: Bench) -> None:
    window = bench.jobs.settings.lanes.under_way
    for number in range(window):
        job = bench.job(State.QUEUED, silent_for=0.0)
        bench.client.hset(JobKeys(job.id).job, "state", b"\xff")
        if number % 10 == 9 or number == window - 1:
            bench.look()
    assert int(bench.client.hget(AdmissionKeys("interactive").counts, "held") or 0) == 0
    whole = bench.job(silent_for=0.0)
    assert list(bench.jobs.admission.under_way()) == [whole.id]


def test_a_job_that_only_its_tasks_cannot_read_is_not_driven_while_it_is_set_aside(bench: Bench) -> None:
    job = bench.job()
    bench.client.hset(JobKeys(job.id).job, "request", '{"question": "why?", "lane": "bulk"}')
    bench.look()
    assert bench.sent() == {"search": 1, "plan": 1}, "the reaper reads no request"
    found = bench.jobs.damaged
    with pytest.raises(Exception, match="its request cannot be read") as raised:
        bench.jobs.job(job.id)
    found.add(job.id, raised.value)
    bench.clock.at += 30
    bench.look()
    assert bench.sent() == {}
    assert found.ids() == [job.id]


def test_one_that_ends_while_it_is_set_aside_is_forgotten(bench: Bench) -> None:
    job = bench.job()
    bench.client.hset(JobKeys(job.id).job, "lane", "bulk")
    bench.look()
    assert bench.jobs.damaged.ids() == [job.id]
    bench.jobs.endings.stop([job.id], State.CANCELLED, "by the caller")
    bench.look()
    assert bench.jobs.damaged.counts() == (0, 1)


def test_what_only_matters_while_a_job_waits_costs_one_that_runs_nothing(bench: Bench) -> None:
    job = bench.job()
    bench.client.hset(JobKeys(job.id).job, mapping={"waits_until": "x", "rank": "x", "updated_at": "x"})
    bench.look()
    assert bench.jobs.damaged.ids() == []
    assert bench.sent() == {"search": 1, "plan": 1}


def test_a_mark_that_says_nothing_keeps_no_work_from_being_sent_again(bench: Bench) -> None:
    job = bench.job()
    bench.client.hset(JobKeys(job.id).work, mapping={"busy:0.1": "x", "sent:0.2": b"\xff"})
    bench.look()
    bench.clock.at += 10
    bench.look()
    assert bench.sent() == {"search": 1, "plan": 1}


def test_a_node_whose_record_is_lost_is_sent_and_its_task_says_so(bench: Bench) -> None:
    job = bench.job()
    bench.client.hdel(JobKeys(job.id).nodes, "0.1")
    bench.look()
    assert bench.tasks("search") == ["search.leaf"]


@pytest.mark.parametrize("lost", ["0.0", "0.1"])
def test_a_leaf_whose_state_is_lost_does_not_keep_the_merge_waiting(bench: Bench, lost: str) -> None:
    job = bench.job()
    bench.client.hset(JobKeys(job.id).leaves, mapping={node.id: "failed" for node in NODES})
    bench.client.hdel(JobKeys(job.id).leaves, lost)
    bench.look()
    (message,) = bench.client.lrange("merge", 0, -1)
    (arguments, *_) = json.loads(base64.b64decode(json.loads(message)["body"]))
    assert arguments == [{"v": 1, "job_id": job.id, "force": True}], "the count says that a node is open"
