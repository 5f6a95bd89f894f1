"""The cache on a real Redis: one computation for many askers, no wrong value, no failure of the caller."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import Field
from redis.backoff import NoBackoff
from redis.retry import Retry

from shared import cache_entries
from shared.cache import LEAF, Cache, CacheResult, CacheStats, CacheStatus
from shared.cache_entries import AGES, SIZES, STATS, RedisEntries, cache_key, encode_entry
from shared.errors import InputError, NotRunningError
from shared.models import Cost
from shared.models.base import Model
from shared.settings import Settings, load_settings
from tests.support.redis_server import free_port
from tests.support.waiting import until


class Vector(Model):
    values: tuple[float, ...] = ()
    notes: dict[str, str] = Field(default_factory=dict)


PARTS = {"tenant": "a", "model": "m", "text": "如何优化?"}
KEY = cache_key("embedding", PARTS, Vector)
VALUE = Vector(values=(0.25, -1.5))


@pytest.fixture
def cache(client: redis.Redis, settings: Settings) -> Cache:
    return Cache(client, settings)


class Upstream:
    """Counts how often it is asked; `delay` s for each call."""

    def __init__(self, delay: float = 0.0, error: Exception | None = None) -> None:
        self.delay, self.error, self.calls = delay, error, 0
        self._lock = threading.Lock()

    def __call__(self) -> Vector:
        with self._lock:
            self.calls += 1
        time.sleep(self.delay)
        if self.error is not None:
            raise self.error
        return VALUE


def ask(cache: Cache, compute: Callable[[], Vector], wait_s: float = 10.0) -> tuple[Vector, CacheResult]:
    return cache.get_or_compute("embedding", PARTS, Vector, compute, wait_s=wait_s)


def together(number: int, work: Callable[[int], object]) -> list[object]:
    """Runs `work` in that many threads at once; errors come back as values."""
    gate = threading.Barrier(number)

    def run(index: int) -> object:
        gate.wait(timeout=10)
        try:
            return work(index)
        except RuntimeError as error:
            return error

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(run, range(number)))


def hows(results: list[object]) -> Counter[CacheStatus]:
    assert all(value == VALUE for value, _ in results)
    return Counter(outcome.status for _, outcome in results)


# One asker


def test_the_second_asker_gets_what_the_first_computed(cache: Cache) -> None:
    upstream = Upstream()
    assert ask(cache, upstream) == (VALUE, CacheResult(status=CacheStatus.COMPUTED))
    assert ask(cache, upstream) == (VALUE, CacheResult(status=CacheStatus.HIT))
    assert upstream.calls == 1


def test_two_tenants_never_share(cache: Cache) -> None:
    upstream = Upstream()
    for tenant in ("a", "b"):
        _, outcome = cache.get_or_compute("embedding", {**PARTS, "tenant": tenant}, Vector, upstream, wait_s=1)
        assert outcome.status is CacheStatus.COMPUTED


def test_every_key_has_a_ttl_and_no_lock_stays(cache: Cache, client: redis.Redis, settings: Settings) -> None:
    ask(cache, Upstream())
    assert {key.decode() for key in client.keys("*")} == {KEY.entry, STATS, AGES, SIZES}
    assert 0 < client.ttl(KEY.entry) <= settings.cache.ttl_s
    assert 0 < client.ttl(STATS) <= settings.jobs.ttl_s


def test_an_entry_ends_with_its_ttl(client: redis.Redis, settings: Settings) -> None:
    short = Cache(client, settings.model_copy(update={"cache": settings.cache.model_copy(update={"ttl_s": 1})}))
    ask(short, Upstream())
    assert 0 < client.pttl(KEY.entry) <= 1000


@pytest.mark.parametrize(("switch", "kind"), [("enabled", "embedding"), ("leaves", LEAF)])
def test_when_switched_off_everything_is_computed_and_redis_left_alone(
    client: redis.Redis, settings: Settings, switch: str, kind: str
) -> None:
    off = Cache(client, settings.model_copy(update={"cache": settings.cache.model_copy(update={switch: False})}))
    upstream = Upstream()
    for _ in range(2):
        found = off.get_or_compute(kind, PARTS, Vector, upstream, wait_s=1)
        assert found == (VALUE, CacheResult(status=CacheStatus.BYPASSED))
    assert upstream.calls == 2
    assert client.keys() == []


def test_parts_that_make_no_key_are_refused_before_anything_is_computed(cache: Cache) -> None:
    upstream = Upstream()
    with pytest.raises(InputError, match="tenant"):
        cache.get_or_compute("embedding", {"text": "x"}, Vector, upstream, wait_s=1)
    assert upstream.calls == 0


# Many at once


def test_32_threads_compute_once(cache: Cache) -> None:
    upstream = Upstream(delay=0.2)
    counts = hows(together(32, lambda _: ask(cache, upstream)))
    assert upstream.calls == 1
    assert counts[CacheStatus.COMPUTED] == 1
    assert counts[CacheStatus.COMPUTED] + counts[CacheStatus.WAITED] + counts[CacheStatus.HIT] == 32


def test_32_caches_without_shared_memory_compute_once(client: redis.Redis, settings: Settings) -> None:
    upstream = Upstream(delay=0.2)
    counts = hows(together(32, lambda _: ask(Cache(client, settings), upstream)))
    assert upstream.calls == 1
    assert counts[CacheStatus.COMPUTED] == 1
    assert counts[CacheStatus.BYPASSED] == 0


PROCESS = """
import os, sys, threading, time
import redis
from shared.cache import Cache
from shared.models import Cost
from shared.settings import load_settings

url, threads, wait_s, dies = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "dies"
client = redis.Redis.from_url(url)
cache = Cache(client, load_settings(redis={"url": url}))

def compute():
    client.incr("calls")
    if dies:
        os._exit(9)
    time.sleep(0.5)
    return Cost(llm_calls=7)

def ask():
    value, outcome = cache.get_or_compute("rewrite", {"tenant": "a"}, Cost, compute, wait_s=wait_s)
    assert value == Cost(llm_calls=7)
    client.hincrby("hows", outcome.status.value)

client.incr("ready")
while not client.exists("go"):
    time.sleep(0.002)
started = [threading.Thread(target=ask) for _ in range(threads)]
for thread in started: thread.start()
for thread in started: thread.join()
"""


def start(url: str, threads: int, wait_s: float, end: str = "lives") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROCESS, url, str(threads), str(wait_s), end]
    return subprocess.Popen(command, cwd=Path(__file__).parents[3])


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait(timeout=10)


def test_4_processes_of_8_threads_compute_once(
    client: redis.Redis, redis_url: str, processes: list[subprocess.Popen[bytes]]
) -> None:
    processes += [start(redis_url, 8, 20.0) for _ in range(4)]
    until(lambda: client.get("ready") == b"4")
    client.set("go", 1)
    assert [process.wait(timeout=30) for process in processes] == [0] * 4
    assert client.get("calls") == b"1"
    counts = {how.decode(): int(number) for how, number in client.hgetall("hows").items()}
    assert counts.pop("computed") == 1
    assert sum(counts.values()) == 31
    assert "bypassed" not in counts


def test_given_a_leader_that_dies_then_a_follower_takes_over(
    cache: Cache, client: redis.Redis, redis_url: str, processes: list[subprocess.Popen[bytes]]
) -> None:
    client.set("go", 1)
    processes.append(start(redis_url, 1, 2.0, "dies"))  # its lease is one second
    assert processes[0].wait(timeout=30) == 9
    assert client.keys("ramify:cache:rewrite:*}") == []
    value, outcome = cache.get_or_compute("rewrite", {"tenant": "a"}, Cost, lambda: Cost(llm_calls=1), wait_s=20)
    assert (value, outcome) == (Cost(llm_calls=1), CacheResult(status=CacheStatus.COMPUTED))


def test_given_a_lock_of_a_dead_leader_then_one_of_many_takes_over(client: redis.Redis, settings: Settings) -> None:
    client.set(KEY.lock, "dead", px=300)
    upstream = Upstream(delay=0.1)
    counts = hows(together(8, lambda _: ask(Cache(client, settings), upstream)))
    assert upstream.calls == 1
    assert counts == {CacheStatus.COMPUTED: 1, CacheStatus.WAITED: 7}


def test_given_a_leader_slower_than_its_lease_then_it_keeps_the_flight(client: redis.Redis, settings: Settings) -> None:
    slow, fast = Upstream(delay=1.2), Upstream()
    with ThreadPoolExecutor(1) as pool:
        leader = pool.submit(ask, Cache(client, settings), slow, 1.0)  # a lease of 0.5 s
        until(lambda: client.exists(KEY.lock))
        _, outcome = ask(Cache(client, settings), fast)
        assert leader.result(timeout=10)[1].status is CacheStatus.COMPUTED
    assert outcome.status is CacheStatus.WAITED
    assert fast.calls == 0


def test_given_a_leader_that_takes_too_long_then_the_follower_computes_and_says_so(
    client: redis.Redis, settings: Settings
) -> None:
    client.set(KEY.lock, "another worker", px=60_000)
    for seconds in (0.0, 0.2):
        client.delete(KEY.entry)
        value, outcome = ask(Cache(client, settings), Upstream(), wait_s=seconds)
        assert value == VALUE
        assert outcome.status is CacheStatus.BYPASSED
        assert "another worker's identical embedding" in outcome.warning
        assert client.get(KEY.lock) == b"another worker"


def test_given_a_thread_that_hangs_then_the_others_compute(cache: Cache) -> None:
    release, begun = threading.Event(), threading.Event()

    def hang() -> Vector:
        begun.set()
        release.wait(timeout=20)
        return VALUE

    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask, cache, hang)
        begun.wait(timeout=10)
        upstream = Upstream()
        _, outcome = ask(cache, upstream, wait_s=0.1)
        release.set()
    assert outcome.status is CacheStatus.BYPASSED
    assert upstream.calls == 1


def test_what_one_job_does_to_its_value_does_not_reach_another(cache: Cache) -> None:
    def compute() -> Vector:
        time.sleep(0.2)
        return Vector(notes={"a": "b"})

    values = [value for value, _ in together(4, lambda _: ask(cache, compute))]
    values[0].notes["a"] = "changed"
    assert [value.notes["a"] for value in values[1:]] == ["b"] * 3


# Errors of the computation


def test_an_error_is_raised_and_never_stored(cache: Cache, client: redis.Redis) -> None:
    with pytest.raises(RuntimeError, match="429"):
        ask(cache, Upstream(error=RuntimeError("429")))
    assert client.keys("ramify:cache:embedding:*") == []
    assert ask(cache, Upstream())[1].status is CacheStatus.COMPUTED


@pytest.mark.parametrize("one_process", [True, False])
def test_given_a_leader_that_fails_then_one_follower_computes(
    client: redis.Redis, settings: Settings, *, one_process: bool
) -> None:
    shared, lock, calls = Cache(client, settings), threading.Lock(), 0

    def compute() -> Vector:
        nonlocal calls
        with lock:
            calls += 1
            first = calls == 1
        time.sleep(0.2)
        if first:
            raise RuntimeError("the first call fails")
        return VALUE

    results = together(8, lambda _: ask(shared if one_process else Cache(client, settings), compute))
    failed = [result for result in results if isinstance(result, RuntimeError)]
    counts = hows([result for result in results if not isinstance(result, RuntimeError)])
    assert len(failed) == 1
    assert calls == 2
    assert counts[CacheStatus.COMPUTED] == 1
    assert counts[CacheStatus.BYPASSED] == 0


def test_given_an_interrupt_then_the_flight_is_given_back(cache: Cache, client: redis.Redis) -> None:
    def interrupted() -> Vector:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(cache, interrupted)
    assert not client.exists(KEY.lock)
    assert ask(cache, Upstream(), wait_s=0)[1].status is CacheStatus.COMPUTED


def test_a_value_that_json_would_change_is_given_but_not_stored(cache: Cache, client: redis.Redis) -> None:
    value, outcome = ask(cache, lambda: Vector(values=(float("inf"),)))
    assert value.values == (float("inf"),)
    assert outcome.status is CacheStatus.COMPUTED
    assert "was not cached" in outcome.warning
    assert not client.exists(KEY.entry, KEY.lock)


@pytest.mark.parametrize("one_process", [True, False])
def test_given_a_value_that_is_not_to_be_kept_then_nobody_else_is_served_it(
    client: redis.Redis, settings: Settings, *, one_process: bool
) -> None:
    shared, upstream = Cache(client, settings), Upstream(delay=0.05)

    def work(_: int) -> object:
        asked = shared if one_process else Cache(client, settings)
        return asked.get_or_compute("embedding", PARTS, Vector, upstream, wait_s=10, keep=lambda value: value != VALUE)

    assert hows(together(4, work)) == {CacheStatus.COMPUTED: 4}
    assert upstream.calls == 4
    assert not client.exists(KEY.entry, KEY.lock)
    assert ask(shared, Upstream())[1].status is CacheStatus.COMPUTED
    assert work(0) == (VALUE, CacheResult(status=CacheStatus.HIT))


# Poisoned entries


def other_value(parts: dict[str, object] | None = None, kind: str = "embedding") -> bytes:
    return encode_entry(Vector(values=(9.0,)), cache_key(kind, parts or PARTS, Vector), Vector)


POISON = {
    "nothing": b"",
    "text": b"garbage",
    "cut off": encode_entry(VALUE, KEY, Vector)[:-3],
    "too long": encode_entry(VALUE, KEY, Vector) + b"x",
    "another tenant's": other_value({**PARTS, "tenant": "b"}),
    "another kind's": other_value(kind="rerank"),
    "another schema's": encode_entry(Vector(values=(9.0,)), replace(KEY, schema="1.0000000000000000"), Vector),
}


@pytest.mark.parametrize("name", POISON)
def test_a_poisoned_entry_is_deleted_and_computed_again(cache: Cache, client: redis.Redis, name: str) -> None:
    client.set(KEY.entry, POISON[name])
    upstream = Upstream()
    value, outcome = ask(cache, upstream)
    assert (value, outcome.status) == (VALUE, CacheStatus.COMPUTED)
    assert "did not verify" in outcome.warning
    assert ask(cache, upstream) == (VALUE, CacheResult(status=CacheStatus.HIT))
    assert cache.stats()["embedding"] == CacheStats(hit=1, computed=1, rejected=1)


@pytest.mark.parametrize("entry", [True, False])
def test_keys_of_another_type_are_cleared_away(cache: Cache, client: redis.Redis, *, entry: bool) -> None:
    client.hset(KEY.entry if entry else KEY.lock, "a", "b")
    assert ask(cache, Upstream(), wait_s=0.5)[1].status is CacheStatus.COMPUTED
    assert cache.stats()["embedding"].rejected == int(entry)
    assert client.keys("*:lock") == []


def test_a_lock_without_an_end_holds_nobody_up(cache: Cache, client: redis.Redis) -> None:
    client.set(KEY.lock, "from nowhere")
    assert ask(cache, Upstream(), wait_s=0.5)[1].status is CacheStatus.COMPUTED


def test_given_many_askers_of_a_poisoned_entry_then_it_is_computed_once(
    client: redis.Redis, settings: Settings
) -> None:
    client.set(KEY.entry, POISON["cut off"])
    upstream = Upstream(delay=0.1)
    hows(together(16, lambda _: ask(Cache(client, settings), upstream)))
    assert upstream.calls == 1
    assert Cache(client, settings).stats()["embedding"].rejected == 1


GOOD = encode_entry(VALUE, KEY, Vector)


@given(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)), st.binary(max_size=30))
@hypothesis_settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_stored_bytes_changed_at_random_never_give_a_wrong_value(
    cache: Cache, client: redis.Redis, start: int, end: int, piece: bytes
) -> None:
    client.set(KEY.entry, GOOD[:start] + piece + GOOD[end:])
    assert ask(cache, lambda: VALUE)[0] == VALUE
    assert ask(cache, Upstream())[1].status is CacheStatus.HIT


# Many keys in one call


def test_many_are_read_at_once_and_the_missing_computed_in_one_call(cache: Cache) -> None:
    calls: list[list[int]] = []

    def compute(missing: list[int]) -> list[Vector]:
        calls.append(missing)
        return [Vector(values=(float(index),)) for index in missing]

    def many(texts: str) -> list[tuple[tuple[float, ...], CacheStatus]]:
        keys = [{"tenant": "a", "text": text} for text in texts]
        found = cache.get_or_compute_many("embedding", keys, Vector, compute, wait_s=1)
        return [(value.values, outcome.status) for value, outcome in found]

    assert many("ab") == [((0.0,), CacheStatus.COMPUTED), ((1.0,), CacheStatus.COMPUTED)]
    assert many("xbyxa") == [
        ((0.0,), CacheStatus.COMPUTED),
        ((1.0,), CacheStatus.HIT),
        ((2.0,), CacheStatus.COMPUTED),
        ((0.0,), CacheStatus.COMPUTED),  # asked twice in one call, computed once
        ((0.0,), CacheStatus.HIT),
    ]
    assert many("") == []
    assert calls == [[0, 1], [0, 2]]
    assert cache.stats()["embedding"] == CacheStats(hit=2, computed=4)


def test_calls_that_overlap_never_wait_for_each_other_in_a_ring(client: redis.Redis, settings: Settings) -> None:
    one, computed, lock = Cache(client, settings), Counter[int](), threading.Lock()

    def work(index: int) -> object:
        texts = [(index * 3 + step * 5) % 20 for step in range(10)]

        def compute(missing: list[int]) -> list[Vector]:
            time.sleep(0.05)
            with lock:
                computed.update(texts[place] for place in missing)
            return [Vector(values=(float(texts[place]),)) for place in missing]

        keys = [{"tenant": "a", "text": text} for text in texts]
        asked = one if index % 2 else Cache(client, settings)
        found = asked.get_or_compute_many("embedding", keys, Vector, compute, wait_s=10)
        assert [value.values for value, _ in found] == [(float(text),) for text in texts]
        return [outcome.status for _, outcome in found]

    results = together(16, work)
    assert not any(CacheStatus.BYPASSED in found for found in results)
    assert computed == Counter(range(20))


def test_a_wrong_number_of_values_is_an_error_and_stores_nothing(cache: Cache, client: redis.Redis) -> None:
    keys = [{"tenant": "a", "text": text} for text in "abc"]
    with pytest.raises(ValueError, match="3 embedding values were asked for, 1 were computed"):
        cache.get_or_compute_many("embedding", keys, Vector, lambda _: [VALUE], wait_s=1)
    assert client.keys("ramify:cache:embedding:*") == []


# A Redis that fails


@pytest.fixture
def broken() -> Iterator[redis.Redis]:
    """No server behind it."""
    with redis.Redis(port=free_port(), socket_timeout=0.2, retry=Retry(NoBackoff(), 0)) as client:
        yield client


def test_without_redis_values_are_computed_with_a_warning(broken: redis.Redis, settings: Settings) -> None:
    cache, upstream = Cache(broken, settings), Upstream(delay=0.2)
    results = together(8, lambda _: ask(cache, upstream))
    counts = hows(results)
    assert upstream.calls == counts[CacheStatus.BYPASSED]
    assert counts[CacheStatus.BYPASSED] + counts[CacheStatus.WAITED] == 8
    warned = [outcome for _, outcome in results if outcome.status is CacheStatus.BYPASSED]
    assert all("Redis does not answer (ConnectionError)" in outcome.warning for outcome in warned)
    with pytest.raises(NotRunningError, match="does not answer"):
        cache.stats()


def test_errors_of_the_computation_stay_themselves_without_redis(broken: redis.Redis, settings: Settings) -> None:
    with pytest.raises(RuntimeError, match="429"):
        ask(Cache(broken, settings), Upstream(error=RuntimeError("429")))
    with pytest.raises(redis.ConnectionError, match="upstream's own"):
        ask(Cache(broken, settings), Upstream(error=redis.ConnectionError("upstream's own")))


def test_a_redis_that_is_silent_is_asked_once_and_then_left_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_entries, "REST_S", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with redis.Redis(port=port, socket_timeout=0.2, retry=Retry(NoBackoff(), 0)) as client:
            spy = Mock(wraps=client.mget)
            monkeypatch.setattr(client, "mget", spy)
            cache = Cache(client, settings)
            outcomes = [ask(cache, Upstream())[1] for _ in range(20)]
    assert {outcome.status for outcome in outcomes} == {CacheStatus.BYPASSED}
    assert all("TimeoutError" in outcome.warning for outcome in outcomes)
    assert spy.call_count == 1


def test_when_redis_comes_back_it_is_used_again_and_told_what_was_missed(
    client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_entries, "REST_S", 0.05)
    cache = Cache(client, settings)
    with monkeypatch.context() as patch:
        patch.setattr(client, "mget", Mock(side_effect=redis.ConnectionError("gone")))
        assert ask(cache, Upstream())[1].status is CacheStatus.BYPASSED
    time.sleep(0.1)
    assert ask(cache, Upstream())[1].status is CacheStatus.COMPUTED
    assert cache.stats()["embedding"] == CacheStats(computed=1, bypassed=1)


def test_a_full_redis_serves_hits_and_bypasses_the_rest(cache: Cache, client: redis.Redis) -> None:
    ask(cache, Upstream())
    client.config_set("maxmemory", 1)
    try:
        assert ask(cache, Upstream())[1].status is CacheStatus.HIT
        found, outcome = cache.get_or_compute("embedding", {**PARTS, "text": "new"}, Vector, Upstream(), wait_s=1)
    finally:
        client.config_set("maxmemory", 0)
    assert (found, outcome.status) == (VALUE, CacheStatus.BYPASSED)
    assert "Redis refuses" in outcome.warning
    assert client.keys("*:lock") == []
    ask(cache, Upstream())
    assert cache.stats()["embedding"] == CacheStats(hit=2, computed=1, bypassed=1)


def test_a_redis_that_fills_up_meanwhile_takes_no_value_and_keeps_no_lock(cache: Cache, client: redis.Redis) -> None:
    def compute() -> Vector:
        client.config_set("maxmemory", 1)
        return VALUE

    try:
        value, outcome = ask(cache, compute)
    finally:
        client.config_set("maxmemory", 0)
    assert (value, outcome.status) == (VALUE, CacheStatus.BYPASSED)
    assert "Redis refuses" in outcome.warning
    assert not client.exists(KEY.entry, KEY.lock)


def test_a_claim_that_is_repeated_after_a_lost_reply_still_leads(client: redis.Redis) -> None:
    side = RedisEntries(client, ttl_s=60, stats_ttl_s=60)
    assert [side.claim([KEY], "mine", 5, {})[0].leads for _ in range(2)] == [True, True]
    assert not side.claim([KEY], "another's", 5, {})[0].leads


def test_a_lock_lost_before_the_value_is_stored_does_not_end_anothers_flight(cache: Cache, client: redis.Redis) -> None:
    def compute() -> Vector:
        client.set(KEY.lock, "another worker", px=60_000)
        return VALUE

    assert ask(cache, compute)[1].status is CacheStatus.COMPUTED
    assert client.get(KEY.lock) == b"another worker"
    assert ask(cache, Upstream())[1].status is CacheStatus.HIT


# Figures


def test_hit_rates_are_counted_by_kind(cache: Cache, client: redis.Redis) -> None:
    for _ in range(4):
        ask(cache, Upstream())
    cache.get_or_compute("rewrite", PARTS, Vector, Upstream(), wait_s=1)
    client.hset(STATS, "embedding:unknown", 5)  # another release's
    stats = cache.stats()
    assert stats == {"embedding": CacheStats(hit=3, computed=1), "rewrite": CacheStats(computed=1)}
    assert stats["embedding"].hit_rate == pytest.approx(0.75)
    assert CacheStats().hit_rate == 0


def test_the_defaults_switch_the_cache_on() -> None:
    assert load_settings().cache.enabled
