"""Settings of this process beside those of the pools that run: a difference is one sentence with the fix."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.diagnosis.settings import RunningSettings, telling
from orchestrator.local.checks_stack import pool_settings
from shared.connections import heartbeat
from shared.connections.heartbeat import WORKERS, Heartbeat, set_node_name, worker_id
from shared.errors import InputError
from shared.jobs import JobStore
from shared.settings import Settings, load_settings
from shared.settings.fingerprint import fingerprint
from tests.support.waiting import until

_MINE = {"mine": [{"stage": "lexical"}, {"stage": "fusion"}]}


def _runs(client: redis.Redis, pool: str, settings: Settings, *, here: bool = False) -> None:
    """A worker of another host with these settings, or one of this host whose process is gone."""
    head, ticks = worker_id().rpartition("@")[2].rsplit("-", 1)
    worker = f"{pool}@{head}-9{ticks}" if here else f"{pool}@far:7:ab-1:9"
    said = {"pool": pool, "queues": [pool], "settings": dict(fingerprint(settings))}
    client.set(heartbeat.key(worker), json.dumps(said), ex=20)
    client.zadd(WORKERS, {worker: float(client.time()[0])})  # type: ignore[index]


def _said(client: redis.Redis, **settings: Any) -> str:
    return RunningSettings(client, load_settings(**settings)).difference() or ""


def test_given_pools_with_the_same_settings_when_asked_then_nothing_is_said(client: redis.Redis) -> None:
    for pool in ("plan", "search"):
        _runs(client, pool, load_settings())
    assert _said(client) == ""
    (check,) = pool_settings(load_settings(), telling(client))
    assert check.ok


def test_given_a_strategy_that_was_changed_when_asked_then_it_is_named_with_the_fix(client: redis.Redis) -> None:
    for pool in ("plan", "search"):
        _runs(client, pool, load_settings())
    changed = {"strategies": {"deep": _MINE["mine"]}, "rerank": {"provider": "none"}}
    said = _said(client, **changed)
    assert "those of the running pools in section rerank, strategy deep: restart them (`ramify down`" in said
    (check,) = pool_settings(load_settings(**changed), telling(client))
    assert check.ok is False
    assert "ramify down" in check.fix


def test_given_pools_that_differ_from_each_other_when_asked_then_the_pools_are_named(client: redis.Redis) -> None:
    _runs(client, "plan", load_settings())
    _runs(client, "search", load_settings(strategies=_MINE))
    said = _said(client)
    assert "those of pool search in strategy mine (which only they have), and the pools differ from each other" in said


def test_given_a_pool_that_was_killed_when_asked_then_its_last_heartbeat_says_nothing(client: redis.Redis) -> None:
    _runs(client, "plan", load_settings(strategies=_MINE), here=True)
    assert _said(client) == ""


def test_given_a_worker_when_it_beats_then_it_tells_its_settings(client: redis.Redis, store: JobStore) -> None:
    set_node_name("merge")
    beat = Heartbeat(client, store.settings.model_copy(update={"enable_summary": True}), ("merge",))
    beat.start()
    try:
        until(lambda: telling(client), 5)
        said = RunningSettings(client, store.settings).difference()
        assert said
        assert "in section llm" in said
    finally:
        beat.stop()
        set_node_name("")


def test_given_a_strategy_that_only_one_side_has_when_submitted_then_it_is_refused_with_the_fix(
    ramify: Ramify, client: redis.Redis
) -> None:
    _runs(client, "search", ramify.settings)
    _runs(client, "plan", load_settings(strategies=_MINE))
    with pytest.raises(InputError, match="known strategies"):
        ramify.submit("why?", strategy="mine")
    _runs(client, "search", load_settings(strategies=_MINE))
    with Ramify(ramify.settings) as other, pytest.raises(InputError, match="only the running pools have it"):
        other.submit("why?", strategy="mine")
    _runs(client, "plan", ramify.settings)
    own = ramify.settings.model_copy(update={"strategies": load_settings(strategies=_MINE).strategies})
    with Ramify(own) as other:
        for call in (other.submit, other.find):
            with pytest.raises(InputError, match="pool plan started without it: restart them"):
                call("why?", strategy="mine")
        job = other.submit("why?")
        assert "strategy mine" in (other.why(job).settings or "")
    client.delete(heartbeat.key("plan@far:7:ab-1:9"), heartbeat.key("search@far:7:ab-1:9"))
    with Ramify(own) as other:
        assert other.submit("why?", strategy="mine"), "without pools that tell there is nothing to compare with"
