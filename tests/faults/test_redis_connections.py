"""Connections that are lost, silent or closed under a task: none of them ends a worker or leaves it deaf."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from celery import Celery

from orchestrator.local import commands
from shared.connections.connect import drop_idle
from shared.connections.heartbeat import workers
from shared.jobs import connect
from shared.settings import Settings, load_settings
from shared.tasks.app import make_app
from shared.tasks.redis_transport import ReadySub
from shared.tasks.thread_pool import ThreadPool
from tests.faults.redis_proxy import Proxy
from tests.faults.redis_stage import PATIENCE_S
from tests.support.waiting import until

OUTAGE_S = 6.0


@contextmanager
def worker(settings: Settings, app: str) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, **commands.environment(settings)}
    command = [sys.executable, "-m", "celery", "-A", app, "worker", "-Q", "merge", "-P", "threads", "-c", "2"]
    with (settings.data_dir / "log").open("wb") as log:
        process = subprocess.Popen([*command, "-n", "merge@%h", "-l", "INFO"], env=env, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def test_a_worker_takes_messages_again_after_an_outage(redis_url: str, client: redis.Redis, tmp_path: Path) -> None:
    with Proxy(urlsplit(redis_url).port or 0) as proxy:
        through = load_settings(redis={"url": proxy.url, "timeout_s": 1.0}, data_dir=tmp_path)
        with worker(through, "workers.app") as process:
            until(lambda: workers(client), PATIENCE_S)
            proxy.refusing = True
            proxy.cut()
            client.lpush("merge", "{}")
            time.sleep(OUTAGE_S)
            proxy.refusing = False
            until(lambda: not client.llen("merge"), PATIENCE_S)
            assert process.poll() is None


def test_the_pool_hears_of_every_end() -> None:
    """Where Celery's own pool of threads drops the error, and with it one of its places, for ever."""
    ends: list[Any] = []

    def target() -> None:
        raise ConnectionError("Redis is away just as the end is recorded")

    pool = ThreadPool(limit=1, app=Celery())
    pool.start()
    try:
        for _ in range(3):
            pool.apply_async(target, callback=ends.append).get(timeout=5)
        assert [(failed, str(info.exception.exc)) for failed, info, _ in ends] == [
            (True, "Redis is away just as the end is recorded")
        ] * 3
    finally:
        pool.stop()


def test_what_fails_while_the_end_is_told_is_told_once() -> None:
    ends: list[Any] = []

    def told(end: Any) -> None:
        ends.append(end)
        raise RuntimeError("the listener itself fails")

    pool = ThreadPool(limit=1, app=Celery())
    pool.start()
    try:
        with pytest.raises(RuntimeError, match="listener"):
            pool.apply_async(lambda: "done", callback=told).get(timeout=5)
        assert ends == ["done"]
    finally:
        pool.stop()


def test_a_late_acknowledgement_ends_no_worker(settings: Settings) -> None:
    """A task may outlive the connection that brought it; kombu's own AttributeError ended the whole worker."""
    with make_app(settings) as app, app.connection_for_write() as line:
        channel = line.default_channel
        line.close()
        channel.basic_ack("tag")


def test_idle_connections_are_dropped_and_those_in_use_are_not(settings: Settings) -> None:
    with connect(settings) as store, store.pubsub() as used:
        used.subscribe("news")
        used.get_message(timeout=1)
        store.ping()
        assert store.info("clients")["connected_clients"] >= 2
        before = store.client_id()
        drop_idle()
        assert store.client_id() != before, "a new one"
        assert used.connection._sock is not None


def test_reading_a_silent_subscription_does_not_wait(client: redis.Redis) -> None:
    listener = ReadySub(client.connection_pool)
    listener.subscribe("news")
    until(lambda: listener.connection.can_read(timeout=0), 5)
    assert listener.parse_response()[0] == b"subscribe"

    def too_late(*_: object) -> None:
        raise AssertionError("it waits for a message that nobody sends")

    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(5)
    try:
        assert listener.parse_response() is None
        client.publish("news", "hello")
        until(lambda: listener.connection.can_read(timeout=0), 5)
        assert listener.parse_response()[2] == b"hello"
    finally:
        signal.alarm(0)
        listener.close()
