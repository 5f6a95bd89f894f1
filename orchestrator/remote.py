"""Sends a request to a worker pool and waits for the reply, outside of any job. Every wait has a deadline."""

from __future__ import annotations

from celery import Celery
from celery.exceptions import TimeoutError as CeleryTimeoutError
from pydantic import BaseModel

from shared.contract import TaskName
from shared.errors import NotRunningError
from shared.jobs import reachable
from shared.settings import Settings


def call_pool(app: Celery, settings: Settings, name: TaskName, request: BaseModel, timeout_s: float) -> str:
    """The reply of the task, as JSON. Raises: NotRunningError when Redis or the pool does not answer in time."""
    with reachable(settings):
        sent = app.send_task(
            name.value,
            args=(request.model_dump(mode="json", exclude_defaults=True),),
            queue=name.queue.value,
            expires=timeout_s,
        )
        try:
            # A task may wait here, for another pool. Celery's own leave to do so, `allow_join_result`, is one flag of
            # the process: a thread that is done takes it from all others.
            return str(sent.get(timeout=timeout_s, disable_sync_subtasks=False))
        except CeleryTimeoutError:
            raise NotRunningError(
                f"no {name.queue.value} worker answered in {timeout_s:.0f} s: `ramify doctor` says why"
            ) from None
        finally:
            sent.forget()
