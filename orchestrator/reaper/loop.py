"""Runs the reaper in the processes of the ops pool, every two seconds on a thread of its own.

It uses the monotonic clock: a wall clock that is set back must not stop it. Several ops workers may run; the leader's
lock lets one of them check at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutdown
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.reaper.reaper import Reaper
from shared.contract import Queue
from shared.errors import RamifyError
from shared.jobs import JobStore, connect
from shared.settings import Settings

log = logging.getLogger("ramify.reaper")
EVERY_S = 2.0
#: Seconds that a stopping worker waits for a run that is under way.
_STOP_S = 5.0


class ReaperLoop:
    """Calls `run` every `every_s` seconds, until `stop`. What it raises is logged and does not end the loop."""

    def __init__(self, run: Callable[[], object], every_s: float = EVERY_S) -> None:
        self._call, self._every_s = run, every_s
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; a second call changes nothing."""
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)
            self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """End after a run that is under way, waiting at most `timeout_s` seconds for it."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopped.set()
            thread.join(timeout_s)

    def _run(self) -> None:
        failing = False
        while not self._stopped.is_set():
            due = time.monotonic() + self._every_s
            try:
                self._call()
                failing = False
            except (RedisError, OperationalError, RamifyError, OSError) as error:
                if not failing:
                    log.warning("no look at the jobs (%s: %s); trying on", type(error).__name__, error)
                failing = True
            except Exception:
                log.exception("a look at the jobs failed; trying on")
            self._stopped.wait(max(0.0, due - time.monotonic()))


class _Process:
    """The loop of this process, if it is an ops worker."""

    loop: ReaperLoop | None = None


@worker_ready.connect
def start_loop(sender: Any, **_: object) -> None:
    """Start it where the queue ops is served."""
    app: Celery = sender.app
    if Queue.OPS.value in set(map(str, app.amqp.queues.consume_from)) and _Process.loop is None:
        settings: Settings = app.conf.ramify
        _Process.loop = ReaperLoop(Reaper(app, JobStore(connect(settings), settings)).run)
        _Process.loop.start()


@worker_shutdown.connect
def stop_loop(**_: object) -> None:
    """Stop it with the worker."""
    if _Process.loop:
        _Process.loop.stop(_STOP_S)
