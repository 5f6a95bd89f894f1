"""Says which workers live: each names itself, gives signs of life in Redis, and the others look at those.

A sign is a key of its own with a TTL, so that a worker that is cut off from Redis counts as gone to every other host.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from redis import Redis
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from shared.models.base import Model
from shared.process import identity, pid_namespace
from shared.redis_pools import drop_idle
from shared.settings import Settings
from shared.watchdog import Watchdog

#: Sorted set: worker id -> its last sign, in seconds of Redis' clock.
WORKERS = "ramify:workers"
TTL_S = 20
BEAT_S = 2.0
#: A worker is forgotten after a day without a sign.
_KEPT_S = 86_400
_HOST_CHARS = 48
_POOL_CHARS = 16
_ID = re.compile(r"(?P<pool>[\w.\-]*)@(?P<host>[\w.\-]+):(?P<pid>\d{1,10}):(?P<mark>[\w.\-]+):(?P<space>\d{1,20})")
_log = logging.getLogger(__name__)


class _Name:
    """This process's pool, and its id once that was asked for."""

    pool = ""
    pid, id = 0, ""


def named(pool: str) -> None:
    """Name this process's pool; from then on it stands in `worker_id`."""
    _Name.pool = _plain(pool)[:_POOL_CHARS]
    _Name.pid = 0


def worker_id() -> str:
    """This process as `<pool>@<host>:<pid>:<start mark>:<pid namespace>`: printable, no spaces, under 120 characters.

    Another process never has it, not even one that is given the same pid later.
    """
    pid = os.getpid()
    if _Name.pid != pid:  # not asked before, or by the parent of this fork
        _Name.id = f"{_Name.pool}@{_host()}:{pid}:{_mark(pid)}:{pid_namespace()}"
        _Name.pid = pid
    return _Name.id


def _host() -> str:
    """The end of a long name tells pods apart, so that is what is kept."""
    return _plain(socket.gethostname())[-_HOST_CHARS:] or "_"


def _mark(pid: int) -> str:
    """The process's start: the boot id, shortened, and the ticks since then."""
    boot, _, ticks = (identity(pid) or "gone").rpartition(":")
    return _plain(f"{boot[:8]}-{ticks}" if boot else ticks)


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", text)


class Sign(Model):
    """A worker's sign of life. `started` is Unix seconds, `age_s` seconds since the sign.

    `deaf_s`: seconds for which messages have waited and it took none, though it had a thread free.
    """

    worker: str
    pool: str
    started: float
    queues: tuple[str, ...] = ()
    age_s: float = 0.0
    deaf_s: float = 0.0


def key(worker: str) -> str:
    """Where a worker's sign stands."""
    return f"ramify:worker:{worker}"


class Vitals:
    """Gives signs of life of this process, every 2 s, until `stop`."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._settings = client, settings
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._started = time.time()
        self.queues: tuple[str, ...] = ()
        self.watchdog: Watchdog | None = None

    def start(self) -> None:
        """Begin; a second call changes nothing."""
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._beat, name="vitals", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End, and take the sign away. Takes no longer than one command may; does not raise."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._over.set()
        thread.join(timeout=self._settings.redis.timeout_s)
        self._leave()

    def _leave(self) -> None:
        try:
            with self._client.pipeline(transaction=False) as pipe:
                pipe.delete(key(worker_id()))
                pipe.zrem(WORKERS, worker_id())
                pipe.execute()
        except (RedisError, OSError) as error:
            _log.info("the sign of life stays until it expires (%s)", type(error).__name__)

    def _beat(self) -> None:
        """Outages are the very time when this must not end, so no error does it."""
        silent = False
        while not self._over.is_set():
            try:
                self._sign()
                if self.watchdog:
                    self.watchdog.look(self._leave)
                silent = False
            except Exception as error:  # noqa: BLE001 - see above; said once, and seen by all in the missing sign
                if isinstance(error, RedisTimeoutError):
                    drop_idle()
                if not silent:
                    _log.warning("no sign of life can be given (%s: %s); trying on", type(error).__name__, error)
                silent = True
            self._over.wait(BEAT_S)

    def _sign(self) -> None:
        me = worker_id()
        # Refused by nobody: a Redis that is full takes no new value, but lets an old one live.
        self._client.expire(key(me), TTL_S)
        sign: dict[str, object] = {"started": round(self._started, 3), "pool": _Name.pool, "queues": self.queues}
        if self.watchdog and self.watchdog.deaf_s:
            sign["deaf_s"] = round(self.watchdog.deaf_s, 1)
        now = _now(self._client)
        with self._client.pipeline(transaction=False) as pipe:
            pipe.set(key(me), json.dumps(sign), ex=TTL_S)
            pipe.zadd(WORKERS, {me: now})
            pipe.zremrangebyscore(WORKERS, "-inf", now - _KEPT_S)
            pipe.expire(WORKERS, _KEPT_S)
            pipe.execute()


def living(client: Redis, ids: Iterable[str], *, signs: bool = True) -> frozenset[str]:
    """Which of these workers live: those of this host and pid namespace by a look at the process, others by their sign.

    `signs` False: a worker of another host lives, whatever its sign says. Asks Redis once, and not at all when all are
    of this host. Raises: RedisError.
    """
    found, away = set[str](), list[str]()
    for worker in dict.fromkeys(ids):
        if (parts := _ID.fullmatch(worker)) is None:
            continue
        if parts["host"] == _host() and int(parts["space"]) == pid_namespace() and _same_boot(parts["mark"]):
            if _mark(int(parts["pid"])) == parts["mark"]:
                found.add(worker)
        else:
            away.append(worker)
    if not signs:
        return frozenset(found.union(away))
    if away:
        with client.pipeline(transaction=False) as pipe:
            for worker in away:
                pipe.exists(key(worker))
            found.update(worker for worker, there in zip(away, pipe.execute(), strict=True) if there)
    return frozenset(found)


def _same_boot(mark: str) -> bool:
    """Two machines may share a name and, outside of containers, the number of the pid namespace."""
    return mark.rpartition("-")[0] == _mark(os.getpid()).rpartition("-")[0]


def workers(client: Redis) -> Sequence[Sign]:
    """All workers that have a sign of life, by id. Raises: RedisError."""
    now = _now(client)
    seen: Any = client.zrange(WORKERS, f"{now - TTL_S - BEAT_S:f}", "+inf", byscore=True, withscores=True)
    with client.pipeline(transaction=False) as pipe:
        for worker, _ in seen:
            pipe.get(key(_text(worker)))
        said = pipe.execute()
    signs = (_read(_text(worker), now - at, raw) for (worker, at), raw in zip(seen, said, strict=True) if raw)
    return sorted((sign for sign in signs if sign), key=lambda sign: sign.worker)


def ages(client: Redis) -> dict[str, float]:
    """Seconds since the last sign of every worker that gave one within a day, by id. Raises: RedisError."""
    now = _now(client)
    seen: Any = client.zrange(WORKERS, 0, -1, withscores=True)
    return {_text(worker): max(0.0, now - at) for worker, at in seen}


def _read(worker: str, age_s: float, raw: bytes | str) -> Sign | None:
    """A sign; None when it is not one of ours, but written by hand."""
    try:
        return Sign.model_validate({**json.loads(raw), "worker": worker, "age_s": max(0.0, age_s)})
    except (ValueError, TypeError):
        return None


def _now(client: Redis) -> float:
    """Seconds of Redis' clock, the one that all hosts share."""
    seconds, micros = client.time()
    return float(seconds) + float(micros) / 1e6


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
