"""A bad entry in the broker is set aside, its length logged; the worker that found it goes on. Over a real Redis."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from redis import Redis

from shared.connections.quarantine import KEY, MOST, MOST_BYTES, Quarantine
from shared.contract import Queue
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.message_faults import MAX_MESSAGE_BYTES
from tests.support.waiting import until
from tests.support.worker_in_process import worker_in_process

SECRET = "sk-a-key-that-nobody-may-log"
QUEUE = Queue.RERANK.value


def message(**changed: Any) -> dict[str, Any]:
    """A message as our producers send it, with its parts changed."""
    body = changed.pop("content", [[SECRET], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}])
    whole: dict[str, Any] = {
        "body": base64.b64encode(json.dumps(body).encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"task": "test.note", "id": "1", "lang": "py", "retries": 0, "timelimit": [None, None]},
        "properties": {
            "delivery_info": {"exchange": "", "routing_key": QUEUE, "priority": 0},
            "delivery_tag": "tag", "body_encoding": "base64", "delivery_mode": 2,
        },
    }  # fmt: skip
    for name, value in changed.items():
        whole[name.replace("_", "-")] = value
    return whole


def headers(**changed: Any) -> dict[str, Any]:
    return {**message()["headers"], **changed}


GZIP = headers(compression="application/x-gzip")
BAD: dict[str, bytes] = {
    "no_json": f"not json {SECRET}".encode(),
    "no_utf8": b"\xff\xfe\x00" * 5,
    "a_number": b"7",
    "a_list": b"[1, 2]",
    "empty": b"{}",
    "nested": b"[" * 100_000,
    "long": b'"' + b"x" * MAX_MESSAGE_BYTES + b'"',
    "no_tag": json.dumps(message(properties={"delivery_info": {}})).encode(),
    "no_address": json.dumps(message(properties={"delivery_tag": "t", "delivery_info": {"exchange": []}})).encode(),
    "pickle": json.dumps(message(content_type="application/x-python-serialize")).encode(),
    "compressed": json.dumps(message(headers=GZIP)).encode(),
    "no_base64": json.dumps(message(body="***")).encode(),
    "no_headers": json.dumps(message(headers=None)).encode(),
    "no_task": json.dumps(message(headers={"id": "1"})).encode(),
    "a_list_as_task": json.dumps(message(headers=headers(task=["x"]))).encode(),
    "unknown_task": json.dumps(message(headers=headers(task="os.system"))).encode(),
    "no_id": json.dumps(message(headers=headers(id=None))).encode(),
    "bad_time": json.dumps(message(headers=headers(eta="tomorrow"))).encode(),
    "bad_expiry": json.dumps(message(headers=headers(expires={"a": 1}))).encode(),
    "bad_limits": json.dumps(message(headers=headers(timelimit=7))).encode(),
    "no_arguments": json.dumps(message(content={"args": []})).encode(),
    "half_a_pair": json.dumps(message(properties={**message()["properties"], "delivery_tag": "\ud800"})).encode(),
    "half_a_pair_inside": json.dumps(message(content=[["\ud800"], {}, {}])).encode(),
    "of_celery": json.dumps(message(headers=headers(task="celery.chord_unlock"))).encode(),
    "too_many_arguments": json.dumps(message(headers=headers(task="plan.job"), content=[[{}, 1], {}, {}])).encode(),
    "a_number_as_argument": json.dumps(message(headers=headers(task="plan.job"), content=[[-1], {}, {}])).encode(),
    "named_arguments": json.dumps(message(headers=headers(task="plan.job"), content=[[{}], {SECRET: 1}, {}])).encode(),
    "arguments_for_none": json.dumps(message(headers=headers(task="search.info"), content=[[{}], {}, {}])).encode(),
    "follows_a_number": json.dumps(message(content=[[], {}, {"chain": [7]}])).encode(),
    "follows_half_a_task": json.dumps(message(content=[[], {}, {"callbacks": [{"task": "plan.job"}]}])).encode(),
    "follows_no_task": json.dumps(message(content=[[], {}, {"chord": {"task": 7}}])).encode(),
    "arguments_are_text": json.dumps(message(content=["abc", {}, {}])).encode(),
}
COMMANDS: tuple[Any, ...] = (
    [], {"method": 7}, {"method": "ping", "arguments": [SECRET]}, {"method": "ping", "destination": 1.5},
    {"method": "ping", "pattern": f"({SECRET}+)+$", "matcher": "pcre"}, {"method": "ping", "reply_to": {"exchange": 1}},
    {"method": "cancel_consumer", "arguments": {"queue": "celery"}}, {"method": "pool_shrink", "arguments": {"n": 9}},
    {"method": "rate_limit", "arguments": {"task_name": "test.note", "rate_limit": "1/h"}},
    {"method": "add_consumer", "arguments": {"queue": "evil\x1b[31m"}},
)  # fmt: skip


def noting(app: Celery) -> threading.Event:
    """The event that the task `test.note` of this app sets."""
    done = threading.Event()

    def note(*_: object, **__: object) -> None:
        done.set()

    app.task(name="test.note", shared=False)(note)
    return done


@pytest.fixture
def app(settings: Settings, client: Redis) -> Iterator[Celery]:
    app = make_app(settings)
    yield app
    app.close()


def test_given_bad_messages_when_a_worker_takes_them_then_each_is_set_aside_and_the_good_one_is_run(
    app: Celery, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    done = noting(app)
    for raw in BAD.values():
        client.lpush(QUEUE, raw)
    app.send_task("test.note", queue=QUEUE)
    with (
        caplog.at_level(logging.DEBUG),
        worker_in_process(app, [QUEUE], pool="threads", concurrency=2, loglevel="debug"),
    ):
        assert done.wait(20), "the good message stands behind all bad ones"
        until(lambda: len(list(Quarantine(client).list())) == len(BAD), 10)
    quarantine = Quarantine(client)
    kept = list(quarantine.list())
    assert len(kept) == len(BAD), sorted(one.reason for one in kept)
    assert {one.found_in for one in kept} == {QUEUE}
    assert all(len(one.head) <= 4 * MOST_BYTES for one in kept)
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert SECRET not in logged
    assert f"{len(BAD['no_json'])} bytes in {QUEUE}: no JSON in UTF-8" in logged


def test_given_a_worker_that_ends_with_a_message_taken_then_it_is_the_next_one_of_its_queue(
    app: Celery, client: Redis
) -> None:
    def tag(number: int) -> dict[str, Any]:
        sent = message()
        sent["properties"]["delivery_tag"] = f"tag-{number}"
        return sent

    for number in (1, 2):
        client.lpush(QUEUE, json.dumps(tag(number)))
    with app.connection_for_read() as connection:
        channel = connection.channel()
        taken: list[Any] = []
        channel.basic_consume(QUEUE, no_ack=False, callback=taken.append, consumer_tag="one")
        channel.basic_qos(0, 1, False)
        connection.drain_events(timeout=5)
        assert [one.delivery_tag for one in taken] == ["tag-1"]
        assert set(client.keys("unacked*")) == set()
        channel.close()
    waiting = [json.loads(raw) for raw in reversed(client.lrange(QUEUE, 0, -1))]
    assert [one["properties"]["delivery_tag"] for one in waiting] == ["tag-1", "tag-2"]
    assert waiting[0]["properties"]["delivery_info"]["redelivered"] is True


def test_given_a_broadcast_that_is_no_message_when_a_worker_reads_it_then_it_keeps_its_connection(
    app: Celery, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    done = noting(app)
    raws = (b"{}", b"[]", b"7", SECRET.encode(), b"\xff", b"[" * 100_000, json.dumps(message(headers={})).encode())
    sent = [*raws, *(json.dumps(message(content=command)).encode() for command in COMMANDS)]
    with worker_in_process(app, [QUEUE], pool="threads"):
        until(lambda: client.pubsub_channels("*pidbox*") or client.pubsub_numpat(), 10)
        for raw in sent:
            client.publish("/0.celery.pidbox", raw)
        app.send_task("test.note", queue=QUEUE)
        assert done.wait(15)
    logged = [record.getMessage() for record in caplog.records]
    assert not [line for line in logged if "Connection to broker lost" in line]
    assert sum(line.startswith("dropped a broadcast") for line in logged) == len(sent)
    assert not [line for line in logged if SECRET in line]


def test_given_an_event_when_it_is_read_then_it_need_be_no_command(app: Celery, client: Redis) -> None:
    event = json.dumps(message(content={"type": "worker-heartbeat", "hostname": "plan@here"})).encode()
    with app.connection_for_read() as connection, client.pubsub() as subscriber:

        def read(channel: bytes, raw: bytes) -> object:
            return connection.default_channel._handle_message(subscriber, [b"pmessage", channel, channel, raw])["data"]

        assert read(b"/0.celeryev/worker.heartbeat", event) == event
        assert read(b"/0.celery.pidbox", event) is None
        for raw in (b"[]", b"\xff", json.dumps(message(headers=7)).encode()):
            assert read(b"/0.celeryev/worker.heartbeat", raw) is None


def test_given_more_than_are_kept_then_the_newest_stay_and_the_list_expires(client: Redis) -> None:
    quarantine = Quarantine(client)
    for number in range(MOST + 5):
        quarantine.add(QUEUE, b"x" * number, "no JSON")
    assert quarantine.count() == MOST
    assert next(quarantine.list()).length == MOST + 4
    assert client.ttl(KEY) > 0
    assert (quarantine.clear(), quarantine.count()) == (MOST, 0)
