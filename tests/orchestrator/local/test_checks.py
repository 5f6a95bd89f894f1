"""What doctor reads out of Redis' INFO and out of the workers' heartbeats."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.local import checks_redis, checks_stack
from orchestrator.local.checks import Check
from shared.connections.heartbeat import SilentWorker, WorkerBeat
from shared.contract import POOL_QUEUES, Queue

FINE: dict[str, Any] = {
    "loading": 0,
    "redis_version": "7.2.16",
    "used_memory": 5_000_000,
    "total_system_memory": 8_000_000_000,
    "maxmemory": 0,
    "maxmemory_policy": "noeviction",
    "role": "master",
    "master_repl_offset": 50_000_000,
    "connected_clients": 40,
    "maxclients": 10_000,
    "aof_enabled": 1,
    "aof_last_write_status": "ok",
    "aof_last_bgrewrite_status": "ok",
}
REPLICA = {"ip": "10.0.0.2", "port": 6379, "state": "online", "offset": 50_000_000, "lag": 1}


def faults(**changes: Any) -> dict[str, Check]:
    return {check.name: check for check in checks_redis.read_info(FINE | changes) if not check.ok}


def test_a_redis_in_order_is_four_green_lines() -> None:
    found = checks_redis.read_info(FINE)
    assert [check.name for check in found] == ["redis", "redis persistence", "redis memory policy", "redis memory"]
    assert all(check.ok for check in found)
    assert not any(check.fix for check in found)


@pytest.mark.parametrize(
    ("changes", "name", "detail", "fix"),
    [
        (
            {"loading": 1, "loading_loaded_perc": 41.6, "loading_eta_seconds": 7},
            "redis",
            "42 % done, about 7 s",
            "wait",
        ),
        ({"aof_enabled": 0}, "redis persistence", "no append-only file", "appendonly yes"),
        ({"aof_last_write_status": "err"}, "redis persistence", "takes no changes", "room on its disk"),
        ({"aof_last_bgrewrite_status": "err"}, "redis persistence", "grows on", "memory to fork"),
        (
            {"maxmemory_policy": "allkeys-lru", "evicted_keys": 12_345},
            "redis memory policy",
            "12,345 keys",
            "noeviction",
        ),
        ({"maxmemory": 5_200_000}, "redis memory", "96% of maxmemory (5.2 MB)", "raise maxmemory"),
        ({"used_memory": 7_500_000_000}, "redis memory", "94% of the machine's memory", "set maxmemory"),
        (
            {"role": "slave", "master_host": "10.0.0.1", "master_port": 6379, "master_link_status": "down"},
            "redis role",
            "read-only replica of 10.0.0.1:6379, to which it has lost the link",
            "redis.sentinels",
        ),
        ({"slave0": REPLICA | {"offset": 20_000_000}}, "redis role", "30.0 MB behind", "newest jobs"),
        ({"slave0": REPLICA | {"lag": 31}}, "redis role", "last heard of 31 s ago", "newest jobs"),
        ({"slave0": REPLICA | {"state": "wait_bgsave"}}, "redis role", "does not follow (wait_bgsave)", "newest jobs"),
        ({"connected_clients": 9_500}, "redis connections", "9500 of 10000", "raise maxclients"),
        ({"client_output_buffer_limit_disconnections": 3}, "redis output buffers", "3 clients were cut off", "omem"),
    ],
)
def test_each_thing_that_is_wrong_is_one_sentence_with_a_fix(
    changes: dict[str, Any], name: str, detail: str, fix: str
) -> None:
    found = faults(**changes)
    assert list(found) == [name]
    assert detail in found[name].detail
    assert fix in found[name].fix


def test_a_replica_that_follows_is_fine() -> None:
    (role,) = [check for check in checks_redis.read_info(FINE | {"slave0": REPLICA}) if check.name == "redis role"]
    assert role.ok
    assert role.detail == "master of 1 replicas, all up to date"


@pytest.mark.parametrize("missing", sorted(set(FINE) - {"aof_enabled", "maxmemory_policy"}))
def test_a_field_that_a_release_does_not_have_is_no_fault(missing: str) -> None:
    assert [
        check for check in checks_redis.read_info({k: v for k, v in FINE.items() if k != missing}) if not check.ok
    ] == []


# -- workers ---------------------------------------------------------------------------------------------------------

ALL = {f"{pool}@a": [queue.value for queue in queues] for pool, queues in POOL_QUEUES.items()}
SEEN = dict.fromkeys(ALL, 1.0)


def beat(name: str) -> WorkerBeat:
    pool = name.partition("@")[0]
    return WorkerBeat(worker=f"{name}:7:ab-1:9", pool=pool, queues=tuple(ALL[name]))


BEATS = [beat(name) for name in ALL]


def read(
    answers: dict[str, list[str]], beats: list[WorkerBeat], last: dict[str, float]
) -> list[tuple[bool | None, str, str]]:
    return [(check.ok, check.detail, check.fix) for check in checks_stack.pools(answers, beats, last)]


def test_workers_that_serve_all_queues_are_one_line() -> None:
    ((ok, detail, _),) = read(ALL, BEATS, SEEN)
    assert ok
    assert detail == "5 workers serve all queues: merge@a, ops@a, plan@a, rerank@a, search@a"


def test_workers_of_several_releases_are_named_and_those_of_this_one_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_stack, "release", lambda: "2.0")
    new = [one.but(release="2.0") for one in BEATS]
    assert list(checks_stack.pool_releases(new)) == []
    assert list(checks_stack.pool_releases([])) == []
    ((check),) = checks_stack.pool_releases([BEATS[0], BEATS[1].but(release="1.9"), *new[2:]])
    first, second = BEATS[0].pool, BEATS[1].pool
    assert check.ok is None
    assert check.detail.startswith(f"not told: {first}; 1.9: {second}; 2.0: ")
    assert check.detail.endswith("; this command: 2.0")
    ((check),) = checks_stack.pool_releases([one.but(release="1.9") for one in BEATS])
    assert check.ok is None, "all pools run another release than this command"


def test_workers_of_several_hosts_that_have_one_node_name_are_all_counted() -> None:
    """Hosts that are copies of one image, or pools that are started without `-n`."""
    answers, last = {"celery@a": [queue.value for queue in Queue]}, {"celery@a": 1.0}
    (check,) = checks_stack.pools(answers, BEATS, last, count={"celery@a": 10})
    assert (check.ok, check.detail) == (True, "10 workers serve all queues: celery@a (10 of them)")


def test_a_queue_without_a_worker_is_named() -> None:
    answers = {name: queues for name, queues in ALL.items() if name != "search@a"}
    beats = [one for one in BEATS if one.pool != "search"]
    ((ok, detail, fix),) = read(answers, beats, SEEN)
    assert (ok, detail) == (False, "no worker serves search, index")
    assert "ramify up -d" in fix
    (own,) = checks_stack.pools(answers, beats, SEEN, start="start yours")
    assert own.fix == "see the pools' logs; start yours"


def test_a_worker_that_lives_but_does_not_answer_is_told_from_one_that_is_gone() -> None:
    answers = {name: queues for name, queues in ALL.items() if name != "search@a"}
    ((ok, detail, fix),) = read(answers, BEATS, SEEN)
    assert (ok, detail) == (False, "no worker serves search, index; search@a would, and lives, but does not answer")
    assert "see its log" in fix


def test_a_worker_under_a_node_name_of_the_operators_is_known_by_its_heartbeat() -> None:
    answers = {name: queues for name, queues in ALL.items() if name != "merge@a"} | {"merge@h": ["merge"]}
    beats = [one.model_copy(update={"node": "merge@h"}) if one.pool == "merge" else one for one in BEATS]
    worker = beat("merge@a").worker
    ages = checks_stack.NodeNames(beats).last_beats({worker: 1.0, **{one.worker: 1.0 for one in BEATS}})
    ((ok, detail, _),) = read(answers, beats, ages)
    assert ok, detail
    assert "merge@h" in detail
    ((ok, detail, _),) = read(answers, beats, checks_stack.NodeNames(beats).last_beats({worker: 30.0}) | SEEN)
    assert (ok, detail) == (False, "merge@h answers, but its last heartbeat was 30 s ago")


def test_a_worker_that_is_stopped_is_named_with_its_pid_and_the_command_that_lets_it_go_on() -> None:
    answers = {name: queues for name, queues in ALL.items() if name not in {"search@a", "merge@a"}}
    beats = [one for one in BEATS if one.pool not in {"search", "merge"}]
    search = SilentWorker(worker="search@a:7:ab-1:9", pool="search", pid=7, stopped=True, silent_s=3.0)
    merge = SilentWorker(worker="merge@a:8:ab-1:9", pool="merge", pid=8, stopped=True, silent_s=44.0)
    ((_, detail, fix),) = [(c.ok, c.detail, c.fix) for c in checks_stack.pools(answers, beats, SEEN, [search, merge])]
    said = "search@a pid 7 is there, but it is stopped; merge@a pid 8 is there, but it is stopped"
    assert detail == f"no worker serves search, merge, index: {said}"
    assert fix == "`kill -CONT 7 8` lets it go on"
    hanging = merge.model_copy(update={"stopped": False})
    (check,) = checks_stack.pools(ALL, BEATS, SEEN, [hanging])
    assert (check.ok, check.detail) == (False, "merge@a pid 8 is there, but it has been silent for 44 s")
    assert check.fix.startswith("`kill -KILL 8` ends it if it stays so")


def test_a_worker_that_answers_without_a_sign_of_life_is_named_with_its_last_one() -> None:
    found = read(ALL, BEATS, SEEN | {"rerank@a": 34.4})
    assert [detail for _, detail, _ in found] == ["rerank@a answers, but its last heartbeat was 34 s ago"]
    found = read(ALL, BEATS, {name: age for name, age in SEEN.items() if name != "rerank@a"})
    assert [detail for _, detail, _ in found] == ["rerank@a answers, but had no heartbeat today"]
