"""Which workers are alive: each has an id and renews a key with a TTL in Redis, its heartbeat.

A worker that is cut off from Redis counts as dead to every other host.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from pydantic import ConfigDict, Field
from redis import Redis
from redis.exceptions import OutOfMemoryError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from shared.connections.clock import ServerClock
from shared.connections.connect import drop_idle
from shared.connections.key_types import declare
from shared.connections.process import identity, pid_namespace, stopped
from shared.models.base import Model
from shared.release import release
from shared.settings import Settings
from shared.settings.fingerprint import fingerprint
from shared.settings.path_key import reading_place

#: Sorted set: worker id -> its last heartbeat, in seconds of Redis' clock.
WORKERS = "ramify:workers"
declare({WORKERS: "zset", "ramify:worker:*": "string"})
TTL_S = 20
BEAT_S = 2.0
#: Seconds without a heartbeat after which a worker is forgotten, and between two looks for such.
_KEPT_S, _TIDY_S = 86_400, 60.0
_HOST_CHARS, _POOL_CHARS = 48, 16
_ID = re.compile(r"(?P<pool>[\w.\-]*)@(?P<host>[\w.\-]+):(?P<pid>\d{1,10}):(?P<mark>[\w.\-]+):(?P<space>\d{1,20})")
_log = logging.getLogger(__name__)


class _OwnPool:
    """The pool that this process belongs to, and its node name; empty for clients."""

    pool = ""
    node = ""


def set_node_name(node: str) -> None:
    """Name this process as Celery does, `<pool>@<host>`; from then on the pool is part of `worker_id`.

    The host is the operator's choice (`-n merge@h`), so `worker_id` has the machine's own name.
    """
    _OwnPool.node, _OwnPool.pool = node, _key_part(node.partition("@")[0])[:_POOL_CHARS]


def worker_id() -> str:
    """This process as `<pool>@<host>:<pid>:<start mark>:<pid namespace>`: printable, no spaces, under 120 characters.

    Another process never has it, not even one that is given the same pid later.
    """
    return _worker_id(_OwnPool.pool, os.getpid())


@lru_cache(maxsize=1)
def _worker_id(pool: str, pid: int) -> str:
    return f"{pool}@{_host()}:{pid}:{_start_mark(pid)}:{pid_namespace()}"


def _host() -> str:
    """The last characters of the host name: they tell pods apart."""
    return _key_part(socket.gethostname())[-_HOST_CHARS:] or "_"


def _start_mark(pid: int) -> str:
    """The process's start: the boot id, shortened, and the ticks since then."""
    boot, _, ticks = (identity(pid) or "gone").rpartition(":")
    return _key_part(f"{boot[:8]}-{ticks}" if boot else ticks)


def _key_part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", text)


class WorkerBeat(Model):
    """A worker's heartbeat as stored. `queues`: those that it takes messages from; `settings`: their fingerprint.

    `reads`: see `reading_place`; empty where it reads no files for a client. `node`: its name for remote control.
    `threads`: its places for tasks (0: not known); `running`: tasks under way; `longest_s`: how long the first one is.
    `of_queue`: how many of those under way are from each queue. `release`: empty of one that does not tell.
    """

    model_config = ConfigDict(extra="ignore")  # of a newer release, which may tell more

    worker: str
    pool: str
    queues: tuple[str, ...]
    settings: dict[str, str] = Field(default_factory=dict)
    reads: str = ""
    node: str = ""
    release: str = ""
    threads: int = 0
    running: int = 0
    of_queue: dict[str, int] = Field(default_factory=dict)
    longest_s: float = 0.0

    @property
    def full(self) -> bool:
        """True when it takes no message until a task of it ends."""
        return 0 < self.threads <= self.running


class SilentWorker(Model):
    """A worker of this host whose process lives, but does not answer. `stopped`: by a signal, as SIGSTOP."""

    worker: str
    pool: str
    pid: int
    stopped: bool
    silent_s: float


class TasksUnderWay:
    """The tasks that this process runs now, for its heartbeat."""

    def __init__(self) -> None:
        self.threads = 0
        self._begun: dict[str, tuple[float, str]] = {}

    def begin(self, task_id: str, task: str) -> None:
        """A task begins. `task`: its name, which begins with its queue."""
        self._begun[task_id] = (time.monotonic(), task.partition(".")[0])

    def end(self, task_id: str) -> float:
        """It has ended, however it did. Returns how many seconds it took."""
        begun = self._begun.pop(task_id, None)
        return time.monotonic() - begun[0] if begun else 0.0

    def told(self) -> dict[str, object]:
        """As fields of `WorkerBeat`."""
        begun = list(self._begun.values())
        longest = time.monotonic() - min(at for at, _ in begun) if begun else 0.0
        queues = dict(Counter(queue for _, queue in begun))
        return {"threads": self.threads, "running": len(begun), "longest_s": round(longest, 1), "of_queue": queues}


under_way = TasksUnderWay()


def key(worker: str) -> str:
    """The key of a worker's heartbeat."""
    return f"ramify:worker:{worker}"


class Heartbeat:
    """Renews this process's heartbeat every 2 s, until `stop`. `also` is called behind each, with True at the end."""

    def __init__(
        self,
        client: Redis,
        settings: Settings,
        queues: tuple[str, ...] = (),
        also: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._client, self._settings, self.queues, self._also = client, settings, queues, also
        said = {"queues": queues, "settings": fingerprint(settings), "reads": reading_place(settings)}
        self._said = {**said, "node": _OwnPool.node, "release": release()}
        self._clock, self._tidy_at = ServerClock(client), 0.0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; a second call changes nothing."""
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End, and delete the heartbeat. Takes at most about two timeouts of a command; does not raise."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopped.set()
        thread.join(timeout=self._settings.redis.timeout_s)
        try:
            with self._client.pipeline(transaction=False) as pipe:
                pipe.delete(key(worker_id()))
                pipe.zrem(WORKERS, worker_id())
                pipe.execute()
            self._also(True)
        except (RedisError, OSError) as error:
            _log.info("the heartbeat stays until it expires (%s)", type(error).__name__)

    def _run(self) -> None:
        """No error ends the thread: after an outage the heartbeat must come back by itself."""
        silent = False
        while not self._stopped.is_set():
            try:
                self._beat()
                silent = False
            except Exception as error:  # noqa: BLE001 - see above; logged once an outage
                if isinstance(error, RedisTimeoutError):
                    drop_idle()
                if not silent:
                    _log.warning("no heartbeat can be written (%s: %s); trying on", type(error).__name__, error)
                silent = True
            self._stopped.wait(BEAT_S)

    def _beat(self) -> None:
        me, now = worker_id(), self._clock.now()
        with self._client.pipeline(transaction=False) as pipe:
            pipe.set(key(me), json.dumps({"pool": _OwnPool.pool, **self._said, **under_way.told()}), ex=TTL_S)
            pipe.zadd(WORKERS, {me: now})
            if tidy := time.monotonic() >= self._tidy_at:
                pipe.zremrangebyscore(WORKERS, "-inf", now - _KEPT_S)
                pipe.expire(WORKERS, _KEPT_S)
            try:
                pipe.execute()
            except OutOfMemoryError:
                self._client.expire(key(me), TTL_S)  # this still works at maxmemory
                raise
        if tidy:
            self._tidy_at = time.monotonic() + _TIDY_S
        self._also(False)


def alive_workers(client: Redis, ids: Iterable[str], *, heartbeats: bool = True) -> frozenset[str]:
    """Which of these workers are alive: those of this host and pid namespace by their process, others by heartbeat.

    `heartbeats` False: workers of other hosts count as alive without one. Asks Redis once, and not at all when all are
    of this host. Raises: RedisError.
    """
    alive, remote = set[str](), list[str]()
    for worker in dict.fromkeys(ids):
        if (parts := _ID.fullmatch(worker)) is None:
            continue
        if not _is_here(parts):
            remote.append(worker)
        elif _lives(parts):
            alive.add(worker)
    if remote and heartbeats:
        with client.pipeline(transaction=False) as pipe:
            for worker in remote:
                pipe.exists(key(worker))
            remote = [worker for worker, there in zip(remote, pipe.execute(), strict=True) if there]
    return frozenset(alive.union(remote))


def _is_here(parts: re.Match[str]) -> bool:
    """True for a worker of this host."""
    # Two machines may share a name and, outside of containers, the number of the pid namespace: compare boots too.
    boot = _start_mark(os.getpid()).rpartition("-")[0]
    found = (parts["host"], parts["space"], parts["mark"].rpartition("-")[0])
    return found == (_host(), str(pid_namespace()), boot)


def _lives(parts: re.Match[str]) -> bool:
    """True while the process of a worker of this host lives."""
    return _start_mark(int(parts["pid"])) == parts["mark"]


def silent_workers(client: Redis) -> list[SilentWorker]:
    """Workers of this host that live but are stopped, or whose heartbeat has expired. Raises: RedisError."""
    found = []
    for worker, age in ages(client).items():
        parts = _ID.fullmatch(worker)
        if parts is None or not _is_here(parts) or not _lives(parts):
            continue
        if (halted := stopped(int(parts["pid"]))) or age > TTL_S:
            found.append(
                SilentWorker(worker=worker, pool=parts["pool"], pid=int(parts["pid"]), stopped=halted, silent_s=age)
            )
    return sorted(found, key=lambda silent: silent.worker)


def workers(client: Redis) -> Sequence[WorkerBeat]:
    """All workers that have a heartbeat, by id. Raises: RedisError."""
    seen: Any = client.zrange(WORKERS, f"{ServerClock(client).now() - TTL_S - BEAT_S:f}", "+inf", byscore=True)
    with client.pipeline(transaction=False) as pipe:
        for worker in seen:
            pipe.get(key(_text(worker)))
        values = pipe.execute(raise_on_error=False)
    stored = {_text(worker): raw for worker, raw in zip(seen, values, strict=True) if isinstance(raw, bytes | str)}
    beats = (_read(worker, raw) for worker, raw in stored.items())
    return sorted((beat for beat in beats if beat), key=lambda beat: beat.worker)


def ages(client: Redis) -> dict[str, float]:
    """Seconds since the last heartbeat of every worker that had one within a day, by id. Raises: RedisError."""
    now = ServerClock(client).now()
    seen: Any = client.zrange(WORKERS, 0, -1, withscores=True)
    return {_text(worker): max(0.0, now - at) for worker, at in seen}


def _read(worker: str, raw: bytes | str) -> WorkerBeat | None:
    """A heartbeat; None for what was written by hand."""
    try:
        return WorkerBeat.model_validate({**json.loads(raw), "worker": worker})
    except (ValueError, TypeError):
        return None


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
