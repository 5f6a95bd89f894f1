"""Threads of simulated workers: each runs only while the world lets it, from one call of Redis to the next."""

from __future__ import annotations

import threading
from collections.abc import Callable

import redis

#: What may become of one call: it never arrived; it was carried out, but its reply was lost; it was sent twice.
LOST, UNHEARD, TWICE = "lost", "unheard", "twice"

#: Seconds after which a fiber that neither stops nor ends is a fault of this simulation.
HANGS_S = 30.0


class Killed(BaseException):
    """Ends a fiber whose process was killed: nothing that it still tries has any effect."""


class Fiber:
    """One run of a function by a simulated process. Deterministic: only one fiber runs at any time.

    `doubtful`: it was disturbed, or has ended: what it is at may be sent again. `worked`: it came to the work itself.
    `sleeps`: it stops by itself on the way, so that it needs a thread even where nobody else stops it.
    """

    def __init__(self, worker: str, name: str, function: Callable[[], object], *, sleeps: bool = False) -> None:
        self.worker, self.name, self.sleeps = worker, name, sleeps
        self._function = function
        self._thread: threading.Thread | None = None
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._left: int | None = None
        self.ended = self.killed = self.worked = self.doubtful = False
        self.error: BaseException | None = None
        self.calls = 0
        self.fault = ""
        self.wakes_at = 0.0
        self.at = ("", "")

    def resume(self, calls: int | None = None) -> None:
        """Run on for so many calls; None: until the end, or until it sleeps."""
        self._left = calls
        if self.ended:
            return
        if self._thread is None and calls is None and not self.sleeps:
            self._thread = threading.current_thread()
            self._run()
        elif self._thread is None:
            self._thread = threading.Thread(target=self._run_and_tell, name=self.name, daemon=True)
            self._thread.start()
            self._await()
        else:
            self._go.release()
            self._await()
        if self.error is not None:
            raise self.error

    def kill(self) -> None:
        """Its process is gone, at once."""
        self.killed = True
        if not self.ended and self._thread not in {None, threading.current_thread()}:
            self._go.release()
            self._await()
        self.ended = True

    def _await(self) -> None:
        assert self._back.acquire(timeout=HANGS_S), f"{self.name} of {self.worker} does not come back"

    def _run_and_tell(self) -> None:
        try:
            self._run()
        finally:
            self._back.release()

    def _run(self) -> None:
        try:
            self._function()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - shown to whoever resumed it
            self.error = error
        finally:
            self.ended = True

    # -- called by the fiber itself ----------------------------------------------------------------------------

    def point(self) -> None:
        """Here it may be stopped, and others may run."""
        if self.killed:
            raise Killed
        if self._left == 0:
            self.pause()
        if self._left is not None:
            self._left -= 1
        self.calls += 1

    def pause(self) -> None:
        """Let the others run until somebody resumes this one."""
        if self._thread is threading.main_thread():
            raise AssertionError("a fiber that runs to its end cannot stop on the way")
        self._back.release()
        self._go.acquire()
        if self.killed:
            raise Killed

    def call(self, function: Callable[[], object]) -> object:
        """One call of Redis, with what the world has in store for it."""
        fault, self.fault = self.fault, ""
        self.doubtful = self.doubtful or bool(fault)
        if fault == LOST:
            raise redis.ConnectionError("the simulated connection was lost")
        if fault == TWICE:
            function()
        value = function()
        if fault == UNHEARD:
            raise redis.ConnectionError("the simulated reply was lost")
        return value
