"""A child process that is talked to in JSON lines. Every wait has a timeout; knows nothing of what is said."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from orchestrator.local.child_process import importable
from shared.errors import RamifyError, shown

#: Seconds that a child has to end by itself when its input ends.
_END_S = 10.0
_TAIL_BYTES = 2000


class Conversation:
    """One child. Use as a context manager, from the thread that made it: the kernel binds the child to it."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        """`name` is what people read in errors; the child's stderr is appended to `log`."""
        self._name, self._log = name, log
        launcher = (sys.executable, "-m", "orchestrator.local.launcher", str(os.getpid()), str(int(signal.SIGKILL)))
        with log.open("ab") as stderr:
            self._from = stderr.tell()
            self._process = subprocess.Popen(
                (*launcher, "--", *command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **importable(), **env},
                start_new_session=True,  # Ctrl-C of the terminal is for us alone
            )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name=f"{name} output", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.terminate()  # whoever interrupts us does not want to wait for its work
        self.close()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send one line. Raises: RamifyError when the child has ended."""
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._ended() from None

    def hear(self, timeout_s: float) -> dict[str, Any]:
        """The next line. Raises: RamifyError when none comes in time, the child has ended, or it is no JSON object."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise RamifyError(
                f"{self._name} has been silent for {timeout_s:.0f} s and was stopped; its log is {self._log}"
            ) from None
        if line is None:
            raise self._ended()
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            said = shown(line.decode(errors="replace").strip())
            raise RamifyError(f"{self._name} answered {said}, which is no JSON object; its log is {self._log}")
        return message

    def close(self) -> None:
        """End the child: its input ends; if that is not enough, SIGTERM, then SIGKILL."""
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        with suppress(OSError):
            self._process.stdin.close()
        for harder in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(timeout=_END_S)
                break
            except subprocess.TimeoutExpired:
                harder()
        self._process.wait(timeout=_END_S)
        self._reader.join(timeout=_END_S)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _ended(self) -> RamifyError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_END_S)
        said = self._last_words()
        because = f": {said}" if said else ""
        return RamifyError(f"{self._name} ended with code {self._process.poll()}{because} (its log is {self._log})")

    def _last_words(self) -> str:
        """The last line that the child wrote into its log."""
        with self._log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._from, size - _TAIL_BYTES))
            tail = log.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(tail) if line.strip()), "")
