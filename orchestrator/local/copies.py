"""The supervisor's side of `template.py`: starts the template, and orders copies of it for the pools.

Any failure here is harmless: a program that gets no copy is started as a process of its own, only more slowly.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.local.child_process import AdoptedProcess, Child, Program

NAME = "template"
_PR_SET_CHILD_SUBREAPER = 36
#: Seconds for a copy; it takes some milliseconds.
_COPY_S = 5.0
#: Seconds for loading; the pools go without it after that.
_LOADING_S = 30.0


def can_copy() -> bool:
    """Only on Linux can a copy be bound to the supervisor."""
    return sys.platform == "linux"


class Template(Child):
    """The template process, as one of the stack's children; it is started again when it dies."""

    def __init__(self, apps: Sequence[str], programs: Sequence[Program], log: Path) -> None:
        """`apps`: Celery apps to load. `programs`: those that are to be copies, all in the same environment."""
        room = max(len(os.fsencode(" ".join(program.argv))) for program in programs)  # a copy shows its own there
        self._arguments = (",".join(dict.fromkeys(apps)), "." * room)
        super().__init__(Program(NAME, (), programs[0].env), log)
        self._control: socket.socket | None = None
        self._ready = False
        self._loading_until = 0.0

    def start(self, copy: AdoptedProcess | None = None) -> None:
        """Start it, or start it again; it is no `copy`."""
        self._disconnect()
        self._loading_until = time.monotonic() + _LOADING_S
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = (sys.executable, "-m", "orchestrator.local.template", str(theirs.fileno()), *self._arguments)
            self.program = replace(self.program, argv=argv, pass_fds=(theirs.fileno(),))
            super().start(copy)

    def ready(self) -> bool:
        """True once it has loaded everything; False while it does, and when it ended."""
        self._ready = self._ready or self._receive(0.0) == b"ready"
        return self._ready

    def loading(self) -> bool:
        """True while it is about to be ready, at most 30 s: waiting for it is faster than starting without it."""
        return self.runs and not self.ready() and time.monotonic() < self._loading_until

    def copy(self, program: Program, log: Path) -> AdoptedProcess | None:
        """A copy that runs `program`; None where it cannot be copied, or no copy comes within 5 s."""
        if not program.copied or program.env != self.program.env or not self.ready() or self._control is None:
            return None
        order = {"argv": [*program.argv], "log": str(log), "parent": os.getpid(), "signal": int(program.when_orphaned)}
        try:
            self._control.send(json.dumps(order).encode())
            if answer := self._receive(_COPY_S):
                return AdoptedProcess(int(json.loads(answer)["pid"]))
        except OSError:
            pass
        self.give_up()
        return None

    def give_up(self) -> None:
        """Kill a template that does not answer: a copy that comes too late finds nobody to tell, and ends as well."""
        self._disconnect()
        self.signal(signal.SIGKILL)

    def _disconnect(self) -> None:
        self._ready = False
        if self._control is not None:
            self._control.close()
        self._control = None

    def _receive(self, seconds: float) -> bytes:
        """One message; empty when none came within `seconds`, or the template has closed its end."""
        if self._control is None or not select.select([self._control], [], [], seconds)[0]:
            return b""
        try:
            message = self._control.recv(4096)
        except OSError:
            message = b""
        if not message:
            self._disconnect()
        return message
