"""The supervisor's side of the template: starts it, and orders a copy of it where a program wants one.

Everything here may fail without harm: who gets no copy starts the program by itself, only more slowly.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.local.child_process import Child, Program

_PR_SET_CHILD_SUBREAPER = 36
#: Seconds for a copy; it takes some milliseconds.
_COPY_S = 5.0
#: Seconds for loading; the pools go without it after that.
_LOADING_S = 30.0
NAME = "template"


class Copy:
    """A process that the template made and we adopted; what `subprocess.Popen` would be for one that we started."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs; reaps it."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # reaped by somebody else in this process: how it ended is not known
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


class Template:
    """The template process, as one of the stack's children; it is started again when it dies."""

    def __init__(self, apps: Sequence[str], programs: Sequence[Program], log: Path) -> None:
        """`apps`: Celery apps to load. `programs`: those that are to be copies, all in the same environment."""
        room = max(len(os.fsencode(" ".join(program.argv))) for program in programs)  # a copy shows its own there
        self._words = (",".join(dict.fromkeys(apps)), "." * room)
        self.child = Child(Program(NAME, (), programs[0].env), log)
        self._control: socket.socket | None = None
        self._ready = False
        self._loads_until = 0.0

    def start(self) -> None:
        """Start it, or start it again."""
        self._hang_up()
        self._loads_until = time.monotonic() + _LOADING_S
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            argv = (sys.executable, "-m", "orchestrator.local.template", str(its.fileno()), *self._words)
            self.child.program = replace(self.child.program, argv=argv, pass_fds=(its.fileno(),))
            self.child.start()

    def ready(self) -> bool:
        """True once it has loaded everything; False while it does, and when it ended."""
        if not self._ready and self._control is not None and self._says(0.0):
            self._ready = self._heard() == b"ready"
        return self._ready

    def loads(self) -> bool:
        """True while it is about to be ready, at most half a minute: sooner than what starts without it."""
        return self.child.runs and not self.ready() and time.monotonic() < self._loads_until

    def copy(self, program: Program, log: Path) -> Copy | None:
        """A copy that runs `program`; None when there is none to be had: start it otherwise."""
        if not program.copied or program.env != self.child.program.env or not self.ready() or self._control is None:
            return None
        order = {
            "argv": [*program.argv],
            "log": str(log),
            "parent": os.getpid(),
            "orphaned": int(program.when_orphaned),
        }
        try:
            self._control.send(json.dumps(order).encode())
            if self._says(_COPY_S) and (answer := self._heard()):
                return Copy(int(json.loads(answer)["pid"]))
        except OSError:
            pass
        self.give_up()
        return None

    def give_up(self) -> None:
        """End a template that does not answer: a copy that comes too late finds nobody to tell, and ends as well."""
        self._hang_up()
        self.child.signal(signal.SIGKILL)

    def _hang_up(self) -> None:
        self._ready = False
        if self._control is not None:
            self._control.close()
        self._control = None

    def _says(self, seconds: float) -> bool:
        return self._control is not None and bool(select.select([self._control], [], [], seconds)[0])

    def _heard(self) -> bytes:
        """One message; empty when the other side has hung up."""
        try:
            message = self._control.recv(4096) if self._control is not None else b""
        except OSError:
            message = b""
        if not message:
            self._hang_up()
        return message


def can_copy() -> bool:
    """Only Linux tells a copy of its supervisor's death."""
    return sys.platform == "linux"
