"""Doctor's look at the running stack: supervisor, Redis, queues and who serves them, the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis as redis_client
from celery.exceptions import TimeoutError as NoReplyError

from orchestrator.local import checks_pools, checks_redis, reach
from orchestrator.local.checks import Check, size
from orchestrator.local.state import StackState, read_state
from shared import heartbeat
from shared.cache import Cache
from shared.contract import PRIORITY_STEPS, Queue, TaskName
from shared.errors import RamifyError
from shared.job_store import connect
from shared.job_store.faults import fault
from shared.settings import Settings

_START = "ramify up -d"
_NOT_RUNNING = "not running"
_INSPECT_S = 2.0
_INFO_S = 5.0
#: kombu's separator between a queue's name and its priority in Redis.
_PRIORITY_MARK = "\x06\x16"


def supervisor(settings: Settings, state: StackState | None) -> Sequence[Check]:
    """Whether `ramify up` lives, and what it had to restart."""
    if state is None:
        left = read_state(settings)
        if left is None:
            return (
                Check(name="stack", ok=None, detail=f"{_NOT_RUNNING} in {settings.data_dir.absolute()}", fix=_START),
            )
        detail = f"its supervisor (process {left.pid}) was killed"
        return (
            Check(name="stack", ok=False, detail=detail, fix="`ramify down` clears what it left, then `ramify up -d`"),
        )
    restarts = [f"{child.name} {child.restarts}" for child in state.children if child.restarts]
    detail = f"process {state.pid}, up since {state.started_at:%Y-%m-%d %H:%M} UTC"
    if restarts:
        fix = f"see {settings.data_dir.absolute() / 'logs'}"
        return (Check(name="stack", ok=False, detail=f"{detail}; restarts: {', '.join(restarts)}", fix=fix),)
    return (Check(name="stack", ok=state.ready or None, detail=detail if state.ready else f"{detail}, still starting"),)


def redis(settings: Settings | None) -> Sequence[Check]:
    """What Redis says of itself, what waits in the queues, and what the caches saved."""
    if settings is None:
        return tuple(Check(name=name, ok=None, detail=_NOT_RUNNING, fix=_START) for name in ("redis", "queues"))
    try:
        with _looking(settings) as client:
            found = checks_redis.read(client.info())
            return (*found, *_held(client, settings)) if found[0].ok else found
    except redis_client.RedisError as error:
        said = fault(error) or f"does not answer: {error}"
        return (Check(name="redis", ok=False, detail=said, fix="start it, or correct redis.url"),)


def _held(client: redis_client.Redis, settings: Settings) -> Sequence[Check]:
    """A Redis that takes no changes may refuse these too; what it said of itself is worth no less."""
    try:
        return (_queues(client, settings), _caches(client, settings))
    except redis_client.RedisError as error:
        return (Check(name="queues", ok=None, detail=f"cannot be asked: Redis {fault(error) or type(error).__name__}"),)


def _looking(settings: Settings) -> redis_client.Redis:
    """A client that does not try again by itself: who asks here wants to know how things are now."""
    return connect(settings, retries=0, timeout_s=min(settings.redis.timeout_s, 3.0))


def _queues(client: redis_client.Redis, settings: Settings) -> Check:
    if settings.redis.broker_url.get_secret_value():
        return Check(name="queues", ok=None, detail="in the broker that redis.broker_url names: ask its own tools")
    return _depth(client)


def queue_keys(queue: str) -> list[str]:
    """The Redis lists that hold a queue: one for each priority step."""
    return [queue if step == 0 else f"{queue}{_PRIORITY_MARK}{step}" for step in PRIORITY_STEPS]


def _depth(client: redis_client.Redis) -> Check:
    keys = {queue: queue_keys(queue.value) for queue in Queue}
    with client.pipeline(transaction=False) as pipe:
        for names in keys.values():
            for key in names:
                pipe.llen(key)
        lengths = iter(pipe.execute())
    counts = {queue: [int(next(lengths)) for _ in names] for queue, names in keys.items()}
    half = len(PRIORITY_STEPS) // 2  # the steps of the interactive lane stand first
    waits = {queue: (sum(of[:half]), sum(of[half:])) for queue, of in counts.items()}
    detail = ", ".join(f"{queue} {'+'.join(map(str, counts))}" for queue, counts in waits.items() if any(counts))
    return Check(name="queues", ok=True, detail=f"waiting, interactive+batch: {detail}" if detail else "nothing waits")


def _caches(client: redis_client.Redis, settings: Settings) -> Check:
    """How often something was reused instead of computed, by kind (G5)."""
    if not settings.cache.enabled:
        return Check(name="cache", ok=None, detail="switched off (cache.enabled)")
    stats = Cache(client, settings).stats()
    detail = ", ".join(f"{kind} {found.hit_rate:.0%} of {found.asked}" for kind, found in stats.items())
    return Check(name="cache", ok=True, detail=f"reused: {detail}" if detail else "nothing asked yet")


def workers(settings: Settings, connected: Settings | None) -> Sequence[Check]:
    """Whether every queue has a worker that serves it, and what the search worker says about its store."""
    if connected is None:
        gone = "the search worker, which owns it, is not running"
        pools, store = (
            Check(name=n, ok=None, detail=d, fix=_START) for n, d in (("pools", _NOT_RUNNING), ("store", gone))
        )
        return (pools, *_folder(settings), store)
    try:
        reach.require_redis(connected)  # Celery would try for minutes to reach one that is not there
    except RamifyError:
        detail = "cannot be asked: Redis does not answer"
        pools, store = (Check(name=name, ok=None, detail=detail) for name in ("pools", "store"))
        return (pools, *_folder(settings), store)
    answers = reach.served(connected, _INSPECT_S)
    with _looking(connected) as client:
        beats, last = heartbeat.workers(client), dict[str, float]()
        for worker, age in heartbeat.ages(client).items():
            name = checks_pools.node(worker)
            last[name] = min(age, last.get(name, age))
    served = checks_pools.read(answers, beats, last)
    searched = any(TaskName.SEARCH_INFO.queue.value in queues for queues in answers.values())
    return (*served, *_folder(settings), _store(connected, searched))


def _folder(settings: Settings) -> Sequence[Check]:
    """The embedded store's folder, looked at from outside: the search worker owns it."""
    if settings.store.kind == "server":
        return ()
    folder = settings.data_dir.absolute() / "store" / settings.store.collection
    if not folder.is_dir():
        fix = "ramify ingest PATH..."
        return (Check(name="store folder", ok=None, detail=f"{folder} is not there: nothing ingested", fix=fix),)
    used = sum(_bytes(path) for path in folder.rglob("*"))
    return (Check(name="store folder", ok=True, detail=f"{folder}, {size(used)}"),)


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # the store's owner works on: a file may go while we look
        return 0


def _store(settings: Settings, searched: bool) -> Check:
    if not searched:
        return Check(name="store", ok=None, detail="no search worker answers", fix=_START)
    try:
        answer = reach.ask_store(settings, _INFO_S)
    except NoReplyError:
        detail = f"the search worker did not answer within {_INFO_S:.0f} s"
        return Check(name="store", ok=False, detail=detail, fix="it may be busy; else see logs/search.log")
    return store_said(answer if isinstance(answer, dict) else {})


def store_said(answer: dict[str, Any]) -> Check:
    """Read `search.info`: {"ok": true, "collection": CollectionState or null, "without_tenant"} or {"ok", "error"}."""
    if not answer.get("ok"):
        return Check(name="store", ok=False, detail=str(answer.get("error", "its answer cannot be read")))
    if not (collection := answer.get("collection")):
        return Check(name="store", ok=None, detail="empty: nothing is ingested", fix="ramify ingest PATH...")
    built = collection["built_with"]
    detail = f"{collection['points']} chunks, {built['sparse']}, dense {built['dense'] or 'none'}"
    if (tenants := len(collection.get("tenants", {}))) > 1:
        detail = f"{detail}, {tenants} tenants"
    if unseen := answer.get("without_tenant"):
        said = f"{detail}; nobody sees {unseen} of them, which an older release wrote without a tenant"
        fix = "restart the search and index pools: they give them to the tenant default"
        return Check(name="store", ok=False, detail=said, fix=fix)
    return Check(name="store", ok=True, detail=detail)
