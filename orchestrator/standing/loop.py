"""Runs standing questions and their notices by the clock, on threads of the processes of the ops pool."""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutdown

from orchestrator.reaper.loop import PeriodicLoop
from orchestrator.standing.runner import LOOK_EVERY_S, StandingRunner
from orchestrator.standing.telling import TELL_EVERY_S, Telling
from shared.contract import Queue
from shared.jobs import JobStore, connect
from shared.tasks.app import settings_of

#: Seconds that a stopping worker waits for a look that is under way.
_STOP_S = 5.0
#: The loops of this process, if it is an ops worker.
_loops: list[PeriodicLoop] = []


@worker_ready.connect
def start_standing(sender: Any, **_: object) -> None:
    """Start the loops where the queue ops is served."""
    app: Celery = sender.app
    if Queue.OPS.value in set(map(str, app.amqp.queues.consume_from)) and not _loops:
        settings = settings_of(app)
        runner, telling = (JobStore(connect(settings), settings) for _ in range(2))
        _loops.append(PeriodicLoop("standing", StandingRunner(app, runner).run, LOOK_EVERY_S))
        _loops.append(PeriodicLoop("notices", Telling(telling).run, TELL_EVERY_S))
        for loop in _loops:
            loop.start()


@worker_shutdown.connect
def stop_standing(**_: object) -> None:
    """Stop them with the worker."""
    for loop in _loops:
        loop.stop(_STOP_S)
