"""One process of the stack: started bound to the supervisor, watched, signalled. Knows nothing of what it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from orchestrator.local.state import ChildState
from shared.connections.process import identity, signal_process

_STEADY_S = 60.0
_LONGEST_PAUSE_S = 30.0
_KILLED_PAUSE_S = 1.0
_SERVED_PAUSE_S = 0.1
_SERVED_S = 2.0


@dataclass(frozen=True)
class Program:
    """What to run. `when_orphaned` is the signal that it gets when the supervisor dies without stopping it.

    The default, SIGKILL, suits workers: a task that waits would hold up a warm stop, and work that was not finished is
    delivered again. Redis wants SIGTERM, to write its file to the end. `copied`: it is `python -m celery ...`, and may
    run in a copy of the template. `pass_fds`: open files that it inherits.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    when_orphaned: signal.Signals = signal.SIGKILL
    copied: bool = False
    pass_fds: tuple[int, ...] = ()


class Process(Protocol):
    """What is asked of a process, whoever started it: `subprocess.Popen`, or a copy of the template."""

    pid: int

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""

    def wait(self, timeout: float) -> int:
        """Wait for its end. Raises: subprocess.TimeoutExpired."""


class Copies(Protocol):
    """Who makes processes faster than by starting a program, if it can."""

    def copy(self, program: Program, log: Path) -> Process | None:
        """A process that runs it; None: start it otherwise."""


def pause(deaths: int, lived_s: float = 0.0, *, killed: bool = False) -> float:
    """Seconds before the next start after so many deaths in a row: 1, 2, 4 … 30.

    Who is `killed` from outside (an operator, the kernel short of memory) is not broken, and its work waits for it:
    never more than 1, and next to nothing when it had lived for 2 s or longer.
    """
    if killed:
        return _SERVED_PAUSE_S if lived_s >= _SERVED_S else _KILLED_PAUSE_S
    return min(_LONGEST_PAUSE_S, 2.0 ** (min(deaths, 10) - 1))


class Child:
    """A program and the process that runs it now, if one does. Not thread-safe.

    Start it from the main thread only: the kernel binds it to the thread that started it.
    """

    def __init__(self, program: Program, log: Path) -> None:
        self.program, self.log = program, log
        self.restarts = 0  # since `up`
        self.deaths = 0  # in a row
        self.due: float | None = None  # monotonic time of the next start, while it is down
        self.pid, self.mark = 0, ""
        self._process: Process | None = None
        self._started = 0.0

    def start(self, copies: Copies | None = None) -> None:
        """Start the program in a session of its own, output appended to the log; as a copy where that can be had."""
        self._process = (copies.copy(self.program, self.log) if copies else None) or self._launched()
        self._started, self.due = time.monotonic(), None
        self.pid, self.mark = self._process.pid, identity(self._process.pid) or ""

    def _launched(self) -> Process:
        launcher = (sys.executable, "-m", "orchestrator.local.launcher", str(os.getpid()), str(int(self.when_orphaned)))
        with self.log.open("ab") as log:
            return subprocess.Popen(
                (*launcher, "--", *self.program.argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **importable(), **self.program.env},
                cwd=self.program.cwd,
                start_new_session=True,  # Ctrl-C of the terminal is for the supervisor alone
                pass_fds=self.program.pass_fds,
            )

    @property
    def when_orphaned(self) -> signal.Signals:
        """The signal that it gets when the supervisor dies."""
        return self.program.when_orphaned

    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal; reaps it."""
        return self._process.poll() if self._process else 0

    @property
    def runs(self) -> bool:
        """True while its process lives."""
        return self._process is not None and self._process.poll() is None

    def died(self, now: float) -> float:
        """Note that it was found dead; returns the seconds until its next start, more with each death in a row."""
        lived = now - self._started
        self.deaths = 1 if lived >= _STEADY_S else self.deaths + 1
        self.due = now + pause(self.deaths, lived, killed=self.exit_code() == -signal.SIGKILL)
        return self.due - now

    def signal(self, signum: signal.Signals, *, group: bool = False) -> bool:
        """Signal it (or its whole process group) if it lives."""
        return self.runs and signal_process(self.pid, self.mark, signum, group=group)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; True when it came."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout=max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def state(self) -> ChildState:
        """For the state file."""
        return ChildState(
            name=self.program.name, pid=self.pid, mark=self.mark, log=str(self.log), restarts=self.restarts
        )


def importable() -> dict[str, str]:
    """The project's folder on the children's path, whatever folder `ramify` was called from."""
    root = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}
