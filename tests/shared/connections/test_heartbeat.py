"""Heartbeats: who lives is told at once of this host's processes, and by their keys of the others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
import redis

from shared.connections import heartbeat
from shared.connections.heartbeat import Heartbeat, alive_workers, set_node_name, silent_workers, worker_id, workers
from shared.settings import Settings
from tests.support.waiting import until

_SAY = """
from shared.connections.heartbeat import set_node_name, worker_id
set_node_name('search'); print(worker_id(), flush=True); input()
"""


@pytest.fixture(autouse=True)
def _nameless() -> None:
    set_node_name("")


def elsewhere(worker: str) -> str:
    return worker.replace("@", "@far-", 1)


def test_an_id_is_short_printable_and_names_pool_and_process() -> None:
    set_node_name("search pool\n" + "x" * 200)
    found = worker_id()
    assert found == worker_id()
    assert found.startswith("search_pool_")
    assert f":{os.getpid()}:" in found
    assert found.isprintable()
    assert " " not in found
    assert len(found) < 120


def test_a_forked_child_is_another_worker() -> None:
    context = multiprocessing.get_context("fork")
    mine, (here, there) = worker_id(), context.Pipe()
    child = context.Process(target=lambda: there.send((worker_id(), worker_id() in alive_workers(None, [worker_id()]))))  # type: ignore[arg-type]
    child.start()
    theirs, lives = here.recv()
    child.join(5)
    assert theirs != mine
    assert lives


def test_a_process_of_this_host_is_gone_as_soon_as_it_is_killed(client: redis.Redis) -> None:
    with subprocess.Popen([sys.executable, "-c", _SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout
        worker = it.stdout.readline().strip()
        assert alive_workers(client, [worker, worker_id()]) == {worker, worker_id()}
        client.set(heartbeat.key(worker), "{}", ex=20)  # its last sign outlives it
        it.kill()
        it.wait(5)
        assert alive_workers(client, [worker]) == frozenset()


def test_a_process_that_is_stopped_or_has_no_sign_any_more_is_silent_until_it_goes_on(client: redis.Redis) -> None:
    with subprocess.Popen([sys.executable, "-c", _SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout
        worker, now = it.stdout.readline().strip(), float(client.time()[0])  # type: ignore[index]
        client.zadd(heartbeat.WORKERS, {worker: now, elsewhere(worker): now - 3600, "by hand": now})
        assert silent_workers(client) == []
        it.send_signal(signal.SIGSTOP)
        (found,) = until(lambda: silent_workers(client), 5)
        assert (found.worker, found.pool, found.pid, found.stopped) == (worker, "search", it.pid, True)
        it.send_signal(signal.SIGCONT)
        until(lambda: not silent_workers(client), 5)
        client.zadd(heartbeat.WORKERS, {worker: now - 60})
        (found,) = silent_workers(client)
        assert (found.stopped, found.silent_s > 59) == (False, True)
        it.kill()
        it.wait(5)
        assert silent_workers(client) == [], "a process that is gone is not silent, but dead"


def test_a_stranger_with_the_same_pid_is_not_the_worker(client: redis.Redis) -> None:
    head, ticks = worker_id().rsplit("-", 1)
    assert alive_workers(client, [f"{head}-1{ticks}"]) == frozenset()


def test_a_worker_of_another_host_lives_as_long_as_its_sign(client: redis.Redis) -> None:
    far = elsewhere(worker_id())
    assert alive_workers(client, [far]) == frozenset()
    client.set(heartbeat.key(far), "{}", px=200)
    assert alive_workers(client, [far, worker_id()]) == {far, worker_id()}
    until(lambda: alive_workers(client, [far]) == frozenset(), 2)


@pytest.mark.parametrize("text", ["", "me", "a@b", "a@b:1:2", "a@b:x:y:z", "*", "搜索@b:1:2:3:4", "a@b:1:2:3\n"])
def test_what_is_no_id_does_not_live(client: redis.Redis, text: str) -> None:
    client.set(heartbeat.key(text), "{}")
    assert alive_workers(client, [text]) == frozenset()


def test_a_worker_gives_signs_until_it_stops(client: redis.Redis, settings: Settings) -> None:
    set_node_name("merge")
    beat = Heartbeat(client, settings, ("merge",))
    beat.start()
    beat.start()
    until(lambda: len(workers(client)) == 1, 5)
    (found,) = workers(client)
    assert (found.worker, found.pool, found.queues) == (worker_id(), "merge", ("merge",))
    assert (found.running, found.full) == (0, False)
    assert heartbeat.ages(client)[worker_id()] < heartbeat.BEAT_S + 1
    assert 0 < client.ttl(heartbeat.key(worker_id())) <= heartbeat.TTL_S
    beat.stop()
    assert workers(client) == []
    assert not client.exists(heartbeat.key(worker_id()))


def test_a_worker_whose_threads_are_all_taken_says_so_until_one_is_free() -> None:
    at_work = heartbeat.TasksUnderWay()
    at_work.threads = 2

    def told() -> heartbeat.WorkerBeat:
        return heartbeat.WorkerBeat.model_validate({"worker": "w", "pool": "plan", "queues": (), **at_work.told()})

    at_work.begin("first", "search.leaf")
    assert (told().full, told().running) == (False, 1)
    at_work.begin("second", "index.documents")
    assert told().full
    assert told().of_queue == {"search": 1, "index": 1}
    assert at_work.end("first") >= 0
    assert (told().full, told().threads, told().running) == (False, 2, 1)
    assert told().of_queue == {"index": 1}


def test_signs_go_on_after_an_error(client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    client.set(heartbeat.WORKERS, "no sorted set")
    beat = Heartbeat(client, settings)
    beat.start()
    until(lambda: bool(client.exists(heartbeat.key(worker_id()))), 5)
    time.sleep(0.2)
    client.delete(heartbeat.WORKERS)
    try:
        until(lambda: len(workers(client)) == 1, 5)
    finally:
        beat.stop()


def test_a_redis_that_is_full_lets_the_sign_live_on(
    client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    beat = Heartbeat(client, settings)
    beat.start()
    try:
        until(lambda: bool(client.exists(heartbeat.key(worker_id()))), 5)
        client.config_set("maxmemory", "1kb")
        client.expire(heartbeat.key(worker_id()), 5)
        until(lambda: client.ttl(heartbeat.key(worker_id())) > 10, 5)
    finally:
        client.config_set("maxmemory", 0)
        beat.stop()


def test_what_was_written_by_hand_is_no_worker(client: redis.Redis) -> None:
    now = float(client.time()[0])  # type: ignore[index]
    for name, value in (("a", "no json"), ("b", "[1]"), ("c", '{"pool": 3}'), ("d", '{"pool":"x","queues":[]}')):
        client.set(heartbeat.key(name), value)
        client.zadd(heartbeat.WORKERS, {name: now})
    assert [beat.worker for beat in workers(client)] == ["d"]
