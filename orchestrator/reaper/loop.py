"""Runs what goes by the clock in the processes of the ops pool, each on a thread of its own: reaper and webhooks.

It uses the monotonic clock: a wall clock that is set back must not stop it. Several ops workers may run; the leader's
lock lets one of them check at a time.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutdown
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.reaper.looks import Looks
from orchestrator.reaper.reaper import Reaper
from orchestrator.webhooks.sender import SEND_EVERY_S, Sender
from shared.contract import Queue
from shared.errors import RamifyError
from shared.jobs import JobStore, connect
from shared.tasks.app import settings_of

log = logging.getLogger("ramify.loop")
EVERY_S = 2.0
#: By how much of its pace a loop is early or late. Idle workers ask Redis once a second, and the one that has waited
#: for longest gets a message: at an even pace, what one of them refuses would be given to the same one each time.
_JITTER = 0.25
#: Seconds that a stopping worker waits for a run that is under way.
_STOP_S = 5.0
#: The loops of this process, if it is an ops worker.
_loops: list[PeriodicLoop] = []


class PeriodicLoop:
    """Calls `run` about every `every_s` seconds, until `stop`. What it raises is logged and does not end the loop.

    `name` is that of its thread, and what its log lines begin with.
    """

    def __init__(self, name: str, run: Callable[[], object], every_s: float) -> None:
        self._name, self._call, self._every_s = name, run, every_s
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; a second call changes nothing."""
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
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
            due = time.monotonic() + self._every_s * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - no secret
            try:
                self._call()
                failing = False
            except (RedisError, OperationalError, RamifyError, OSError) as error:
                if not failing:
                    log.warning("%s pass failed (%s: %s); retrying", self._name, type(error).__name__, error)
                failing = True
            except Exception:
                log.exception("%s pass failed; retrying", self._name)
            self._stopped.wait(max(0.0, due - time.monotonic()))


@worker_ready.connect
def start_loops(sender: Any, **_: object) -> None:
    """Start the loops where the queue ops is served."""
    app: Celery = sender.app
    if Queue.OPS.value in set(map(str, app.amqp.queues.consume_from)) and not _loops:
        settings = settings_of(app)
        reaper = Reaper(app, JobStore(connect(settings), settings), Looks(every=False))
        _loops.append(PeriodicLoop("reaper", reaper.run, EVERY_S))
        _loops.append(PeriodicLoop("webhooks", Sender(JobStore(connect(settings), settings)).run, SEND_EVERY_S))
        for loop in _loops:
            loop.start()


@worker_shutdown.connect
def stop_loops(**_: object) -> None:
    """Stop them with the worker."""
    for loop in _loops:
        loop.stop(_STOP_S)
