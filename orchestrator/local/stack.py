"""`ramify up`: starts Redis, the pools and Flower, restarts what dies, stops all of it. Runs no task itself.

Belongs to the main thread: it takes the signals, and its children are bound to the thread that starts them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import SecretStr

from orchestrator.local import commands, copies, reach
from orchestrator.local import reach as ports
from orchestrator.local.background import clear_leftovers
from orchestrator.local.child_process import Child, Program
from orchestrator.local.redis_server import RedisServer
from orchestrator.local.state import (
    StackState,
    log_dir,
    make_folders,
    only_one,
    remove_state,
    rotate,
    tail,
    write_state,
)
from shared.connections.process import identity
from shared.errors import RamifyError
from shared.models.base import Model
from shared.settings import Settings

_USUAL_FLOWER_PORT = 5555
_READY_S = 60.0
_STOP_S = 10.0
_TICK_S = 0.1
_STARTUP_DEATHS = 3
#: Workers reconnect by themselves after a restart of Redis; who does not answer after this long is started anew.
_RECONNECT_S = 15.0


class StackEventKind(StrEnum):
    """What can happen to a part of the stack."""

    STARTING = "starting"
    READY = "ready"
    DIED = "died"
    RESTARTED = "restarted"
    STOPPING = "stopping"
    KILLED = "killed"
    STOPPED = "stopped"


class StackEvent(Model):
    """Something happened to `name` (a child, or "stack"); `detail` is a short phrase for people."""

    kind: StackEventKind
    name: str
    detail: str = ""


class StopAskedError(Exception):
    """A signal came while we waited."""


class StopSignals:
    """Counts SIGINT, SIGTERM and SIGHUP while they are taken; of the main thread."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take them inside the block."""

        def note(*_: object) -> None:
            self.count += 1

        kept = {signum: signal.signal(signum, note) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            yield
        finally:
            for signum, handler in kept.items():
                signal.signal(signum, handler)

    def keep_waiting(self) -> None:
        """Call it while waiting. Raises: StopAskedError once a signal has come."""
        if self.count:
            raise StopAskedError


class Stack:
    """The embedded stack of one data folder. `run` once."""

    def __init__(
        self,
        settings: Settings,
        table: commands.StackTable | None = None,
        on_event: Callable[[StackEvent], None] = lambda _: None,
    ) -> None:
        self._settings, self._on_event = settings, on_event
        self._table = table or commands.table(settings)
        self._redis: RedisServer | None = None
        self._template: copies.Template | None = None
        self._children: dict[str, Child] = {}
        self._signals = StopSignals()
        self._recheck: float | None = None
        self._state = StackState(pid=os.getpid(), mark=identity(os.getpid()) or "", started_at=datetime.now(UTC))

    def run(self, on_ready: Callable[[StackState], None] = lambda _: None) -> None:
        """Start everything, call `on_ready`, watch until SIGINT, SIGTERM or SIGHUP, stop everything.

        Raises: RamifyError when another stack runs here or a part does not start (all is stopped again); InputError
        for a port that is taken or a folder that cannot be written.
        """
        make_folders(self._settings)
        with only_one(self._settings), self._signals.taken():
            try:
                self._start()
                on_ready(self._state)
                while True:
                    self._watch()
                    self._signals.keep_waiting()
                    time.sleep(_TICK_S)
            except StopAskedError:
                pass
            finally:
                self._stop()

    # -- start ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        for name in clear_leftovers(self._settings):
            self._tell(StackEventKind.KILLED, name, "left over from a stack that was killed")
        self._save()
        self._settings = self._with_redis(self._settings)
        env = commands.environment(self._settings)
        programs = [commands.worker(name, pool, self._settings, env) for name, pool in self._table.pools.items()]
        if copies.can_copy():
            self._start_template(programs)
        if self._settings.flower.enabled:
            programs.append(self._flower())
        for program in programs:
            self._launch(program)
        self._wait_ready()
        self._save(ready=True)
        self._tell(StackEventKind.READY, "stack", ", ".join(self._children))

    def _with_redis(self, settings: Settings) -> Settings:
        """Start the embedded Redis, unless the settings name another, which must answer."""
        if settings.redis.url.get_secret_value():
            reach.require_redis(settings)
            return settings
        self._tell(StackEventKind.STARTING, "redis")
        rotate(log_dir(settings) / "redis.log")
        self._redis = RedisServer(settings, self._signals.keep_waiting)
        self._children["redis"] = self._redis.child
        self._redis.start()
        self._save(redis_url=self._redis.url)
        self._tell(StackEventKind.READY, "redis", self._redis.url)
        redis = settings.redis.model_copy(update={"url": SecretStr(self._redis.url)})
        return settings.model_copy(update={"redis": redis})

    def _start_template(self, programs: Sequence[Program]) -> None:
        log = log_dir(self._settings) / f"{copies.NAME}.log"
        rotate(log)
        apps = [*(pool.app for pool in self._table.pools.values()), self._table.control_app]
        self._template = copies.Template(apps, programs, log)
        self._children[copies.NAME] = self._template.child
        self._template.start()
        self._save()
        while self._template.loads():
            self._signals.keep_waiting()
            time.sleep(_TICK_S / 5)

    def _flower(self) -> Program:
        port = ports.pick("flower.port", self._settings.flower.host, self._settings.flower.port, _USUAL_FLOWER_PORT)
        self._save(flower_url=commands.flower_url(self._settings, port))
        return commands.flower(self._table.control_app, port, self._settings, commands.environment(self._settings))

    def _launch(self, program: Program) -> None:
        log = log_dir(self._settings) / f"{program.name}.log"
        rotate(log)
        child = self._children[program.name] = Child(program, log)
        self._tell(StackEventKind.STARTING, program.name)
        child.start(self._template)
        self._save()

    def _wait_ready(self) -> None:
        """Until every pool answers a ping. Raises: RamifyError when one keeps dying or stays silent."""
        until, silent = time.monotonic() + _READY_S, set(self._table.pools)
        while silent:
            self._signals.keep_waiting()
            self._watch()
            if failed := next((c for c in self._children.values() if c.deaths >= _STARTUP_DEATHS), None):
                raise RamifyError(f"{failed.program.name} does not start; the end of {failed.log}:\n{tail(failed.log)}")
            if time.monotonic() >= until:
                name = min(silent)
                log = self._children[name].log
                raise RamifyError(
                    f"{', '.join(sorted(silent))} did not answer in {_READY_S:.0f} s; the end of {log}:\n{tail(log)}"
                )
            for name in silent & reach.answering(self._settings, len(self._table.pools)):
                silent.discard(name)
                self._tell(StackEventKind.READY, name)
            time.sleep(_TICK_S)

    # -- watch ---------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """One look at every child: note the dead, start those whose pause is over."""
        for name, child in list(self._children.items()):
            now = time.monotonic()
            if child.due is None and (code := child.exit_code()) is not None:
                if name == copies.NAME and code >= 0:
                    self._do_without_template(_ending(code))
                else:
                    self._tell(StackEventKind.DIED, name, f"{_ending(code)}; starts again in {child.died(now):.1f} s")
            elif child.due is not None and now >= child.due and not (child.program.copied and self._template_loads()):
                self._restart(name, child)
        if self._recheck and time.monotonic() >= self._recheck:
            self._recheck = None
            self._replace_silent()

    def _restart(self, name: str, child: Child) -> None:
        if name == "flower":
            child.program = self._flower()  # the port may have been lost to another program
        if self._template and name == copies.NAME:
            self._template.start()
        else:
            child.start(self._template)
        child.restarts += 1
        if name == "redis" and self._redis:
            if not self._redis.wait_ready():
                self._redis.stop()
                return  # the next look finds it dead
            self._recheck = time.monotonic() + _RECONNECT_S
        self._save()
        self._tell(StackEventKind.RESTARTED, name, f"restart {child.restarts}")

    def _template_loads(self) -> bool:
        return self._template is not None and self._template.loads()

    def _do_without_template(self, ending: str) -> None:
        """It ended by itself, and would again: its log says why."""
        self._template = None
        self._tell(StackEventKind.DIED, copies.NAME, f"{ending}; every process loads its code itself from now on")
        del self._children[copies.NAME]
        self._save()

    def _replace_silent(self) -> None:
        answered = reach.answering(self._settings, len(self._table.pools))
        for name in set(self._table.pools) - answered:
            if self._children[name].signal(signal.SIGKILL, group=True):
                self._tell(StackEventKind.KILLED, name, "did not come back after the restart of Redis")

    # -- stop ----------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Warm stop of all at once, Redis last, so that what finishes can be recorded. A second signal hurries."""
        self._tell(StackEventKind.STOPPING, "stack")
        others = [child for name, child in self._children.items() if name != "redis"]
        for child in others:
            child.signal(signal.SIGTERM)
        began, asked = time.monotonic(), self._signals.count
        while (
            any(child.runs for child in others) and time.monotonic() - began < _STOP_S and self._signals.count == asked
        ):
            time.sleep(_TICK_S / 2)
        for child in others:
            if child.signal(signal.SIGKILL, group=True):
                child.wait(5.0)
                self._tell(StackEventKind.KILLED, child.program.name, "was still busy")
        if self._redis and not self._redis.stop(_STOP_S):
            self._tell(StackEventKind.KILLED, "redis", "did not stop")
        remove_state(self._settings)
        self._tell(StackEventKind.STOPPED, "stack")

    def _save(self, **changes: object) -> None:
        children = tuple(child.state() for child in self._children.values() if child.pid)
        self._state = self._state.model_copy(update={**changes, "children": children})
        write_state(self._settings, self._state)

    def _tell(self, kind: StackEventKind, name: str, detail: str = "") -> None:
        self._on_event(StackEvent(kind=kind, name=name, detail=detail))


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
