"""`ramify up`: starts Redis, the pools and Flower, restarts what dies, stops all of it. Runs no task itself.

RabbitMQ, where that is the broker, runs elsewhere and must answer.

Belongs to the main thread: it takes the signals, and its children are bound to the thread that starts them.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any, Literal

from orchestrator.local import commands, copies, ports
from orchestrator.local.background import clear_leftovers
from orchestrator.local.child_process import AdoptedProcess, Child, Program
from orchestrator.local.redis_server import RedisServer, require_redis
from orchestrator.local.state import (
    StackState,
    log_dir,
    login_file,
    make_folders,
    make_path_key,
    only_one,
    own_login,
    remove_state,
    rotate,
    rotate_large,
    tail,
    with_redis_url,
    write_state,
)
from shared.connections.broker import broker_label
from shared.connections.process import identity
from shared.errors import RamifyError
from shared.models.base import Model
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.broker import require_broker

#: What HTTP needs, of the extra `server`.
SERVER_PACKAGES = ("fastapi", "uvicorn")
_READY_S = 60.0
_STOP_S = 10.0
_TICK_S = 0.1
_STARTUP_DEATHS = 3
#: Workers reconnect by themselves after a restart of Redis; those that do not answer after so long are started anew.
_RECONNECT_S = 15.0
#: Seconds between two looks at the sizes of the logs.
_LOGS_S = 20.0


StackEventKind = Literal["starting", "ready", "died", "restarted", "stopping", "killed", "stopped"]


class StackEvent(Model):
    """Something happened to `name` (a child, or "stack"); `detail` is a short phrase for people."""

    kind: StackEventKind
    name: str
    detail: str = ""


class StopRequestedError(Exception):
    """A stop signal came while the supervisor waited."""


class StopSignals:
    """Counts SIGINT, SIGTERM and SIGHUP inside its `with`, in place of their usual effect. For the main thread."""

    def __init__(self) -> None:
        self.count = 0
        self._replaced: dict[int, Any] = {}

    def __enter__(self) -> None:
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._replaced[signum] = signal.signal(signum, self._note)

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._replaced.items():
            signal.signal(signum, handler)

    def _note(self, *_: object) -> None:
        self.count += 1

    def keep_waiting(self) -> None:
        """Call it while waiting. Raises: StopRequestedError once a signal has come."""
        if self.count:
            raise StopRequestedError


class Stack:
    """The embedded stack of one data folder. `run` once."""

    def __init__(
        self,
        settings: Settings,
        pools: Mapping[str, commands.Pool] | None = None,
        on_event: Callable[[StackEvent], None] = lambda _: None,
        control_app: str = "orchestrator.app",
    ) -> None:
        """`pools`: those of the settings where none are given. `control_app`: the Celery app that Flower loads."""
        self._settings, self._on_event = settings, on_event
        self._pools, self._control_app = pools or commands.pools(settings), control_app
        self._redis: RedisServer | None = None
        self._template: copies.Template | None = None
        self._children: dict[str, Child] = {}
        self._signals = StopSignals()
        self._listener: socket.socket | None = None
        self._recheck_at: float | None = None
        self._logs_due = 0.0
        self._state = StackState(pid=os.getpid(), mark=identity(os.getpid()) or "", started_at=datetime.now(UTC))

    def run(self, on_ready: Callable[[StackState], None] = lambda _: None) -> None:
        """Start everything, call `on_ready`, watch until SIGINT, SIGTERM or SIGHUP, stop everything.

        Raises: RamifyError when another stack runs here or a part does not start (all is stopped again); InputError
        for a port that is taken or a folder that cannot be written.
        """
        make_folders(self._settings)
        with only_one(self._settings), self._signals:
            try:
                self._start()
                on_ready(self._state)
                while True:
                    self._watch()
                    self._signals.keep_waiting()
                    time.sleep(_TICK_S)
            except StopRequestedError:
                pass
            finally:
                self._stop()

    def _start(self) -> None:
        for name in clear_leftovers(self._settings):
            self._emit("killed", name, "left over from a stack that was killed")
        make_path_key(self._settings)
        self._save(broker=broker_label(self._settings.broker))
        self._listen()
        self._settings = self._with_redis(self._settings)
        with make_app(self._settings) as app:
            require_broker(app, self._settings)
        env = commands.environment(self._settings)
        programs = [commands.worker(name, pool, self._settings, env) for name, pool in self._pools.items()]
        if copies.can_copy():
            self._start_template(programs)
        if self._settings.flower.enabled:
            programs.append(self._flower())
        for program in programs:
            self._launch(program)
        self._wait_ready()
        if self._listener:  # it loads while the pools begin to work, and connections wait for it
            self._launch(commands.server(self._listener.fileno(), env))
        self._save(ready=True)
        self._emit("ready", "stack", ", ".join(self._children))

    def _with_redis(self, settings: Settings) -> Settings:
        """Start the embedded Redis, unless the settings name another, which must answer."""
        if settings.redis.url.get_secret_value():
            require_redis(settings)
            return settings
        self._emit("starting", "redis")
        self._redis = RedisServer(settings, self._signals.keep_waiting)
        self._children["redis"] = self._redis.child
        self._redis.start()
        self._save(redis_url=self._redis.address, redis_password_file=str(self._redis.password_file))
        self._emit("ready", "redis", self._redis.address)
        return with_redis_url(settings, self._redis.url)

    def _start_template(self, programs: Sequence[Program]) -> None:
        log = rotate(log_dir(self._settings) / f"{copies.NAME}.log")
        apps = [*(pool.app for pool in self._pools.values()), self._control_app]
        self._template = self._children[copies.NAME] = copies.Template(apps, programs, log)
        self._template.start()
        self._save()
        while self._template.loading():
            self._signals.keep_waiting()
            time.sleep(_TICK_S / 5)

    def _flower(self) -> Program:
        port = ports.pick("flower.port", self._settings.flower.host, self._settings.flower.port, ports.FLOWER_PORT)
        given = self._settings.flower.basic_auth.get_secret_value()
        login, file = (given, "") if given else (own_login(self._settings), str(login_file(self._settings)))
        self._save(flower_url=commands.url(self._settings.flower.host, port), flower_login_file=file)
        return commands.flower(self._control_app, port, self._settings, commands.environment(self._settings), login)

    def _listen(self) -> None:
        """Take the port of HTTP, where it is installed and wanted."""
        own = self._settings.server
        if own.enabled and all(map(find_spec, SERVER_PACKAGES)):
            self._listener = ports.listen("server.port", own.host, own.port, ports.SERVER_PORT)
            self._save(server_url=commands.url(own.host, self._listener.getsockname()[1]))

    def _launch(self, program: Program) -> None:
        log = rotate(log_dir(self._settings) / f"{program.name}.log")
        child = self._children[program.name] = Child(program, log)
        self._emit("starting", program.name)
        child.start(self._copy(child))
        self._save()

    def _wait_ready(self) -> None:
        """Until every pool answers a ping. Raises: RamifyError when one keeps dying or stays silent."""
        until, silent = time.monotonic() + _READY_S, set(self._pools)
        while silent:
            self._signals.keep_waiting()
            self._watch()
            if failed := next((c for c in self._children.values() if c.deaths >= _STARTUP_DEATHS), None):
                raise RamifyError(f"{failed.program.name} does not start; the end of {failed.log}:\n{tail(failed.log)}")
            if time.monotonic() >= until:
                names, log = ", ".join(sorted(silent)), self._children[min(silent)].log
                raise RamifyError(f"{names} did not answer in {_READY_S:.0f} s; the end of {log}:\n{tail(log)}")
            for name in silent & answering_pools(self._settings, len(self._pools)):
                silent.discard(name)
                self._emit("ready", name)
            time.sleep(_TICK_S)

    def _watch(self) -> None:
        """Check every child once: note the dead, start those whose pause is over."""
        for name, child in list(self._children.items()):
            now = time.monotonic()
            if child.due is None and (code := child.exit_code()) is not None:
                if name == copies.NAME and code >= 0:
                    self._do_without_template(_ending(code))
                else:
                    self._emit("died", name, f"{_ending(code)}; starts again in {child.died(now):.1f} s")
            elif (
                child.due
                and now >= child.due
                and not (child.program.copied and self._template and self._template.loading())
            ):
                self._restart(name, child)
        if self._recheck_at and time.monotonic() >= self._recheck_at:
            self._recheck_at = None
            for name in set(self._pools) - answering_pools(self._settings, len(self._pools)):
                if self._children[name].signal(signal.SIGKILL, group=True):
                    self._emit("killed", name, "did not come back after the restart of Redis")
        if time.monotonic() >= self._logs_due:
            self._logs_due = time.monotonic() + _LOGS_S
            for log in (log_dir(self._settings) / "supervisor.log", *(child.log for child in self._children.values())):
                rotate_large(log)

    def _restart(self, name: str, child: Child) -> None:
        if name == "flower":
            child.program = self._flower()  # the port may have been lost to another program
        child.start(self._copy(child))
        child.note_restart()
        if name == "redis" and self._redis:
            if not self._redis.wait_ready():
                self._redis.stop()
                return  # the next check finds it dead
            self._recheck_at = time.monotonic() + _RECONNECT_S
        self._save()
        self._emit("restarted", name, f"restart {child.restarts}")

    def _do_without_template(self, ending: str) -> None:
        """It ended by itself and would again; its log says why."""
        self._template = None
        self._emit("died", copies.NAME, f"{ending}; every process loads its code itself from now on")
        del self._children[copies.NAME]
        self._save()

    def _stop(self) -> None:
        """Warm stop of all at once, Redis last, so that what finishes can be recorded. A second signal hurries."""
        self._emit("stopping", "stack")
        if self._listener:
            self._listener.close()
        others = [child for name, child in self._children.items() if name != "redis"]
        for child in others:
            child.signal(signal.SIGTERM)
        until, signals = time.monotonic() + _STOP_S, self._signals.count
        while any(child.runs for child in others) and time.monotonic() < until and self._signals.count == signals:
            time.sleep(_TICK_S / 2)
        for child in others:
            if child.signal(signal.SIGKILL, group=True):
                child.wait(5.0)
                self._emit("killed", child.program.name, "was still busy")
        if self._redis and not self._redis.stop(_STOP_S):
            self._emit("killed", "redis", "did not stop")
        remove_state(self._settings)
        self._emit("stopped", "stack")

    def _save(self, **changes: object) -> None:
        children = tuple(child.state() for child in self._children.values() if child.pid)
        self._state = self._state.model_copy(update={**changes, "children": children})
        write_state(self._settings, self._state)

    def _copy(self, child: Child) -> AdoptedProcess | None:
        return self._template.copy(child.program, child.log) if self._template else None

    def _emit(self, kind: StackEventKind, name: str, detail: str = "") -> None:
        self._on_event(StackEvent(kind=kind, name=name, detail=detail))


def answering_pools(settings: Settings, expected: int, timeout_s: float = 1.0) -> set[str]:
    """Names of the pools that answer a ping; returns as soon as `expected` have, else after `timeout_s`."""
    # A connection of its own: Celery's pool is shared by the whole process and may hold one to a Redis that is gone.
    with make_app(settings) as app, app.connection_for_write() as broker:
        try:
            replies = app.control.ping(timeout=timeout_s, limit=expected, connection=broker) or []
        except Exception:  # noqa: BLE001 - no Redis, or Celery reads what anybody may have written into the queue of the replies
            return set()
    return {str(node).split("@", 1)[0] for reply in replies if isinstance(reply, dict) for node in reply}


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
