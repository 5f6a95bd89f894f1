"""Sends a request to a worker pool and waits for the reply, outside of any job. Every wait has a deadline."""

from __future__ import annotations

import time
from typing import Any

from celery import Celery
from celery.exceptions import TaskRevokedError
from celery.exceptions import TimeoutError as CeleryTimeoutError
from pydantic import BaseModel

from shared.contract import TaskName
from shared.errors import NotRunningError
from shared.jobs import reachable
from shared.settings import Settings


def call_pool(app: Celery, settings: Settings, name: TaskName, request: BaseModel, timeout_s: float) -> str:
    """The reply of the task, as JSON. Raises: NotRunningError when Redis or the pool does not answer in time."""
    args = (request.model_dump(mode="json", exclude_defaults=True),)
    with reachable(settings):
        try:
            return str(reply_of(app, name, args, timeout_s))
        except CeleryTimeoutError:
            raise NotRunningError(
                f"no {name.queue.value} worker answered in {timeout_s:.0f} s: `ramify doctor` says why"
            ) from None


def reply_of(app: Celery, name: TaskName, args: tuple[Any, ...], timeout_s: float, **sending: Any) -> Any:
    """What the task returns. `sending`: options of `send_task`. Raises: celery.exceptions.TimeoutError.

    A message that nobody waits for any more is not to be run, so it expires. Celery compares that with the clock of the
    worker: one whose clock is ahead refuses all, and is asked again for what it has to run whenever it comes.
    """
    ends_at = time.monotonic() + timeout_s
    try:
        return _reply(app, name, args, timeout_s, {**sending, "expires": timeout_s})
    except TaskRevokedError:
        return _reply(app, name, args, max(0.0, ends_at - time.monotonic()), sending)


def _reply(app: Celery, name: TaskName, args: tuple[Any, ...], timeout_s: float, sending: dict[str, Any]) -> Any:
    sent = app.send_task(name.value, args=args, queue=name.queue.value, **sending)
    try:
        # A task may wait here, for another pool. Celery's own leave to do so, `allow_join_result`, is one flag of
        # the process: a thread that is done takes it from all others.
        return sent.get(timeout=timeout_s, disable_sync_subtasks=False)
    finally:
        sent.forget()
