"""Whatever somebody else writes into the keys of Redis: pools and reaper go on by themselves. Over a real Redis."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator

import pytest
from celery import Celery
from redis import Redis

from orchestrator.local import checks_redis
from orchestrator.reaper.reaper import LOCK, Reaper
from shared.connections import mending
from shared.connections.connect import connect
from shared.connections.key_types import KEY_TYPES
from shared.connections.quarantine import KEPT_AS, MOST, Quarantine
from shared.contract import Queue, TaskName, queue_keys
from shared.jobs import JobStore, new_id
from shared.models import JobRequest
from shared.settings import Settings
from shared.tasks.app import make_app
from tests.shared.tasks.test_quarantine import SECRET, message, noting
from tests.support.foreign import mutated, put
from tests.support.waiting import until
from tests.support.worker_in_process import worker_in_process

QUEUE = Queue.RERANK.value
BINDINGS = "_kombu.binding.celery.pidbox"


@pytest.fixture
def app(settings: Settings, client: Redis) -> Iterator[Celery]:
    app = make_app(settings)
    yield app
    app.close()


@pytest.fixture(autouse=True)
def _search_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mending._LastSearch, "at", -1e9)


def key_of(rng: random.Random, name: str) -> str:
    return f"{name[:-1]}{rng.choice(('default', 'x'))}" if name.endswith("*") else name


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong types", "garbage"])
@pytest.mark.parametrize("seed", range(4))
def test_given_foreign_keys_when_the_reaper_looks_then_it_goes_on_and_jobs_begin(
    app: Celery, client: Redis, settings: Settings, seed: int, wrong: bool
) -> None:
    rng, jobs = random.Random(seed), JobStore(connect(settings), settings)
    reaper = Reaper(app, jobs)
    jobs.enqueue([(new_id(), JobRequest(question="why?"))])
    for name, kind in KEY_TYPES.items():
        if rng.random() < 0.3:
            put(rng, client, key_of(rng, name), kind, wrong=wrong)
    for _ in range(2):
        reaper.run()
    job_id = new_id()
    jobs.enqueue([(job_id, JobRequest(question="why?"))])
    reaper.run()
    assert job_id in jobs.admission.under_way()


def test_given_queues_of_wrong_types_then_a_worker_takes_and_runs_its_tasks(
    app: Celery, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    done = noting(app)
    keys = [*queue_keys(Queue.RERANK), BINDINGS]
    for key in keys:
        client.set(key, SECRET)
    app.send_task("test.note", queue=QUEUE)
    with worker_in_process(app, [QUEUE], pool="threads"):
        assert done.wait(10)
        client.hset(queue_keys(Queue.RERANK)[-1], SECRET, "meanwhile")
        done.clear()
        app.send_task("test.note", queue=QUEUE)
        assert done.wait(10)
    quarantine = Quarantine(client)
    found = {one.found_in: one for one in quarantine.list()}
    assert found.keys() == set(keys)
    assert found[BINDINGS].reason.startswith("the key was a string, not a set; it is kept as")
    assert client.get(found[BINDINGS].kept_as) == SECRET.encode()
    assert client.ttl(found[BINDINGS].kept_as) > 0
    logged = [record.getMessage() for record in caplog.records]
    assert not [line for line in logged if SECRET in line or "Connection to broker lost" in line]
    assert [line for line in logged if line.startswith(f"set aside the key '{BINDINGS}', of length {len(SECRET)}: ")]
    quarantine.clear()
    assert not client.keys(f"{KEPT_AS}*")


def test_given_messages_with_odd_parts_then_a_worker_goes_on(
    app: Celery, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    done, rng = noting(app), random.Random(7)
    for number in range(150):
        sent = message()
        sent["properties"]["delivery_tag"] = f"tag-{number}"
        options = dict.fromkeys(("callbacks", "errbacks", "chain", "chord"))
        body = mutated(rng, [[{"v": 1, "job_id": new_id()}], {}, options], rng.choice((0, 1, 2)))
        sent["body"] = base64.b64encode(json.dumps(body).encode()).decode()
        sent["headers"] |= {"task": rng.choice(["test.note", *TaskName]), "id": f"id-{number}", "group": None}
        client.lpush(QUEUE, json.dumps(mutated(rng, sent, rng.choice((0, 1, 1, 2)))))
    with worker_in_process(app, [QUEUE], pool="threads", concurrency=2):
        until(lambda: not client.exists(QUEUE), 20)
        done.clear()
        app.send_task("test.note", queue=QUEUE)
        assert done.wait(20)
    assert Quarantine(client).count() > 50
    wrong = ("Connection to broker lost", "raised unexpected", "could not be recorded", "Unrecoverable")
    assert not [line for line in (r.getMessage() for r in caplog.records) if any(text in line for text in wrong)]


def test_given_a_queue_of_a_wrong_type_without_workers_then_doctor_names_it(client: Redis, settings: Settings) -> None:
    client.set("plan", SECRET)
    found = {check.name: check for check in checks_redis.redis(settings)}
    assert found["queues"].ok
    assert "'ramify:quarantine:plan' (plan)" in found["quarantine"].detail
    assert SECRET not in str(found)


def test_given_members_that_are_no_bindings_then_they_are_set_aside(app: Celery, client: Redis) -> None:
    client.sadd(BINDINGS, b"\xff", "odd", "routing\x06\x16\x06\x16queue")
    with app.connection_for_read() as connection:
        table = connection.default_channel.get_table("celery.pidbox")
    assert table == [("routing", "", "queue")]
    assert client.scard(BINDINGS) == 1
    assert [one.found_in for one in Quarantine(client).list()] == [BINDINGS] * 2


def test_given_a_lock_that_never_expires_then_a_reaper_leads_all_the_same(
    app: Celery, client: Redis, settings: Settings
) -> None:
    jobs = JobStore(client, settings)
    jobs.enqueue([(new_id(), JobRequest(question="why?"))])
    for ttl_ms in (None, 3_600_000):
        client.set(LOCK, "x", px=ttl_ms)
        assert Reaper(app, jobs).run() == 1


def test_given_a_wrong_key_of_a_job_then_nothing_is_renamed(client: Redis, settings: Settings) -> None:
    jobs, job_id = JobStore(connect(settings), settings), new_id()
    jobs.enqueue([(job_id, JobRequest(question="why?"))])
    client.set(f"ramify:{{{job_id}}}:leaves", "x")
    Reaper(make_app(settings), jobs).run()
    assert client.get(f"ramify:{{{job_id}}}:leaves") == b"x"
    assert Quarantine(client).count() == 0


def test_the_list_of_what_was_set_aside_is_bounded(client: Redis) -> None:
    quarantine = Quarantine(client)
    for _ in range(MOST + 3):
        client.set("plan", "x")
        assert quarantine.take_wrong_keys({"plan": "list"}) == ["plan"]
    assert quarantine.count() == MOST
    assert len(client.keys(f"{KEPT_AS}*")) == 1
