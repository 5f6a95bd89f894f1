"""One process of the stack: started bound to the supervisor, watched, signalled. Knows nothing of what it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.local.state import ChildState
from shared.connections.process import identity, signal_process

_STEADY_S = 60.0
_LONGEST_PAUSE_S = 30.0
_KILLED_PAUSE_S = 1.0
_SERVED_PAUSE_S = 0.1
_SERVED_S = 2.0
_RESTARTS_KEPT = 20


@dataclass(frozen=True)
class Program:
    """What to run. `when_orphaned`: the signal that it gets when the supervisor dies without stopping it.

    The default, SIGKILL, suits workers: a task that waits would hold up a warm stop, and work that was not finished is
    delivered again. Redis wants SIGTERM, to write its file to the end. `copied`: it is `python -m
    shared.tasks.celery_command ...`, and may run in a copy of the template. `pass_fds`: open files that it inherits.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    when_orphaned: signal.Signals = signal.SIGKILL
    copied: bool = False
    pass_fds: tuple[int, ...] = ()


class AdoptedProcess:
    """A child process that this one did not start; its methods are those of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs; reaps it."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # reaped elsewhere in this process: its exit code is lost
                self.returncode = 1
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its end. Raises: subprocess.TimeoutExpired."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() >= until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.02)
        return code


class Child:
    """A program and the process that runs it now, if one does. Not thread-safe.

    Start it from the main thread only: the kernel binds it to the thread that started it.
    """

    def __init__(self, program: Program, log: Path) -> None:
        self.program, self.log = program, log
        self.restarts = 0  # since `up`
        self.restarted_at = deque[float](maxlen=_RESTARTS_KEPT)  # Unix seconds
        self.deaths = 0  # in a row
        self.due: float | None = None  # monotonic time of the next start, while it is down
        self.pid, self.mark = 0, ""
        self._process: subprocess.Popen[bytes] | AdoptedProcess | None = None
        self._started = 0.0

    def start(self, copy: AdoptedProcess | None = None) -> None:
        """Start the program in a session of its own, output appended to the log; `copy` is a process that runs it."""
        self._process = copy or self._spawned()
        self._started, self.due = time.monotonic(), None
        self.pid, self.mark = self._process.pid, identity(self._process.pid) or ""

    def _spawned(self) -> subprocess.Popen[bytes]:
        program = self.program
        with self.log.open("ab") as log:
            return subprocess.Popen(
                (*launcher(program.when_orphaned), *program.argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **importable(), **program.env},
                cwd=program.cwd,
                start_new_session=True,  # Ctrl-C of the terminal is for the supervisor alone
                pass_fds=program.pass_fds,
            )

    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal; reaps it."""
        return self._process.poll() if self._process else 0

    @property
    def runs(self) -> bool:
        """True while its process lives."""
        return self.exit_code() is None

    def died(self, now: float) -> float:
        """Note that it was found dead; returns the seconds until its next start, more with each death in a row."""
        lived = now - self._started
        self.deaths = 1 if lived >= _STEADY_S else self.deaths + 1
        self.due = now + pause(self.deaths, lived, killed=self.exit_code() == -signal.SIGKILL)
        return self.due - now

    def note_restart(self) -> None:
        """Count that it was started again."""
        self.restarts += 1
        self.restarted_at.append(time.time())

    def signal(self, signum: signal.Signals, *, group: bool = False) -> bool:
        """Signal it (or its whole process group) if it lives."""
        return self.runs and signal_process(self.pid, self.mark, signum, group=group)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; True when it came."""
        try:
            if self._process:
                self._process.wait(timeout=max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def state(self) -> ChildState:
        """For the state file."""
        name, log = self.program.name, str(self.log)
        return ChildState(
            name=name, pid=self.pid, mark=self.mark, log=log, restarts=self.restarts,
            restarted_at=tuple(self.restarted_at),
        )  # fmt: skip


def pause(deaths: int, lived_s: float = 0.0, *, killed: bool = False) -> float:
    """Seconds before the next start after so many deaths in a row: 1, 2, 4 … 30.

    A process that was `killed` from outside (an operator, the kernel short of memory) is not broken, and its work waits
    for it: never more than 1 s, and 0.1 s when it had lived for 2 s or longer.
    """
    if killed:
        return _SERVED_PAUSE_S if lived_s >= _SERVED_S else _KILLED_PAUSE_S
    return min(_LONGEST_PAUSE_S, 2.0 ** (min(deaths, 10) - 1))


def launcher(when_parent_dies: signal.Signals) -> tuple[str, ...]:
    """What stands before a command line to bind its process to this one: it gets the signal when this one dies."""
    bound = (str(os.getpid()), str(int(when_parent_dies)), "--")
    return (sys.executable, "-m", "orchestrator.local.launcher", *bound)


def importable() -> dict[str, str]:
    """The project's folder on the children's path, and not the working folder, which may be anybody's."""
    root = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root, "PYTHONSAFEPATH": "1"}
