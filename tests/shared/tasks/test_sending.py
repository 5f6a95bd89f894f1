"""Chords that many threads send at once, over a real Redis: none waits for another, and nothing is left behind."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import redis
from kombu import Producer, pools

from shared.contract import Queue, TaskMessage, TaskName, queue_keys
from shared.models import Facet, Node
from shared.settings import Settings
from shared.tasks.app import App, make_app
from shared.tasks.redis_transport import Channel
from shared.tasks.result_backend import LAST
from shared.tasks.signatures import job_chord, merge_signature, send_chord, task_signature
from tests.support.waiting import until
from tests.support.worker_in_process import worker_in_process

#: Kombu leaves the sockets of a pool that is thrown away to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
JOB = "1" * 21
NODES = [Node(id=f"0.{number}", parent_id="0", level=1, facet=Facet.HOW, query="why?") for number in range(3)]
#: Fewer than the threads of any of the pools below.
PRODUCERS = 5


@pytest.fixture
def app(settings: Settings, client: redis.Redis) -> Iterator[App]:
    client.flushdb()
    pools.reset()  # of the apps of other tests in this process
    with make_app(settings) as made:
        assert isinstance(made, App)
        yield made
    pools.reset()


@pytest.mark.parametrize("threads", [10, 25, 100])
def test_given_more_threads_than_producers_when_all_send_chords_then_none_waits_for_ever(
    app: App, client: redis.Redis, threads: int
) -> None:
    app.conf.broker_pool_limit = PRODUCERS
    app.conf.broker_pool_acquire_timeout = 30
    together = Barrier(threads)

    def send(_: int) -> None:
        together.wait(30)
        send_chord(app, job_chord(app, JOB, 0, NODES))

    pool = ThreadPoolExecutor(threads)
    try:
        for sent in [pool.submit(send, number) for number in range(threads)]:
            sent.result(timeout=30)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    assert client.llen("search") == threads * len(NODES)


def test_given_a_pool_that_is_used_up_when_a_thread_sends_then_it_does_not_wait_without_end(app: App) -> None:
    app.conf.broker_pool_limit = 1
    app.conf.broker_pool_acquire_timeout = 0.2
    with ThreadPoolExecutor(1) as other, app.producer_or_acquire(), pytest.raises(Exception, match="Timed out"):
        other.submit(send_chord, app, job_chord(app, JOB, 0, NODES)).result(timeout=30)


def test_a_message_of_a_job_is_what_celery_itself_would_send(
    app: App, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.task(name=TaskName.RERANK_LEAF.value, shared=False)(dict)
    follows = merge_signature(app, JOB, 5)
    work = task_signature(app, TaskName.RERANK_LEAF, TaskMessage(job_id=JOB, node_id="0.1"), 5).set(chord=follows)
    with monkeypatch.context() as without:
        without.setattr(Producer, "publish", None)
        work.apply_async(chain=[follows], task_id="1", root_id="2", parent_id="3")
    monkeypatch.setattr(App, "_sent", lambda *_, **__: None)
    work.apply_async(chain=[follows], task_id="1", root_id="2", parent_id="3")
    theirs, ours = (json.loads(raw) for raw in client.lrange(queue_keys(Queue.RERANK)[4], 0, -1))
    assert json.loads(base64.b64decode(ours.pop("body"))) == json.loads(base64.b64decode(theirs.pop("body")))
    for message in (ours, theirs):
        del message["properties"]["delivery_tag"], message["properties"]["reply_to"]
    assert ours == theirs


def test_given_a_lost_connection_when_a_message_is_sent_then_celery_tries_again(
    app: App, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise redis.ConnectionError

    monkeypatch.setattr(Channel, "send", lost)
    send_chord(app, job_chord(app, JOB, 0, NODES))
    assert client.llen("search") == len(NODES)


def test_a_chord_that_was_sent_leaves_no_subscription_and_no_counter(app: App, client: redis.Redis) -> None:
    before = client.info("commandstats").get("cmdstat_lpush", {"calls": 0})["calls"]
    send_chord(app, job_chord(app, JOB, 0, NODES))
    assert client.pubsub_channels() == []
    assert client.info("commandstats")["cmdstat_lpush"]["calls"] == before + 1, "all members with one command"
    assert not client.keys("celery-task*")
    assert client.llen("search") == len(NODES)


def test_the_body_is_sent_once_behind_the_member_that_says_it_was_the_last(app: App, client: redis.Redis) -> None:
    def search(raw: dict[str, str]) -> dict[str, str]:
        return {}

    def rerank(raw: dict[str, str]) -> dict[str, str]:
        client.incr("members")
        return {LAST: "1"} if raw["node_id"] == "0.1" else {}

    for name, body in ((TaskName.SEARCH_LEAF, search), (TaskName.RERANK_LEAF, rerank)):
        app.task(name=name.value, shared=False)(body)
    with worker_in_process(app, ["search", "rerank"], pool="solo"):
        send_chord(app, job_chord(app, JOB, 0, NODES))
        until(lambda: client.get("members") == b"3" and client.llen("merge") == 1, 20)
        time.sleep(0.2)
    assert client.llen("merge") == 1
    assert not client.keys("celery-task*")


def test_given_a_reply_of_remote_control_that_comes_too_late_then_it_does_not_stay_for_good(
    client: redis.Redis, settings: Settings
) -> None:
    name = "7f5e.reply.celery.pidbox"
    with make_app(settings) as app, app.connection_for_write() as broker:
        queue = broker.SimpleQueue(name)
        queue.put({"celery@a": "pong"})
        queue.close()
    assert client.llen(name) == 1
    assert 0 < client.ttl(name) <= 60
