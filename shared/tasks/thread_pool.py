"""Celery's pool of threads with two patches, for Celery 5.7.

It has as many threads again as it has places, for the interactive tasks to which waiting batch tasks lend theirs
(`shared.tasks.redis_transport.LendingQoS`); over RabbitMQ so many for each queue, since RabbitMQ gives as many messages
out of each, and one that waits in a worker would count as lost.

It gives back the place of a task whose end could not be recorded. Related: celery/celery#5642, the same starvation in
the prefork pool; for threads no upstream issue is known. Celery records a task's end in the result backend after its
body. When Redis is unreachable just then, that raises out of Celery's own code, and the pool of threads drops the
error: the task counts as running for ever, its message is not acknowledged, and after as many as there are threads the
worker takes nothing any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from billiard.einfo import ExceptionInfo
from celery.concurrency import thread
from celery.concurrency.base import apply_target

_log = logging.getLogger(__name__)
Callback = Callable[..., Any] | None


class ThreadPool(thread.TaskPool):
    """Stands in for `-P threads`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.executor = ThreadPoolExecutor(max_workers=self.limit * max(2, len(self.app.amqp.queues.consume_from)))

    def on_apply(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        callback: Callback = None,
        accept_callback: Callback = None,
        **_: Any,
    ) -> Any:
        """Run `target` on a thread; `callback` is called at its end in every case."""
        own: Any = self
        untyped: Any = thread
        return untyped.ApplyResult(own.executor.submit(_apply, target, args, kwargs, callback, accept_callback))


def _apply(
    target: Callable[..., Any],
    args: tuple[Any, ...] | None,
    kwargs: dict[str, Any] | None,
    callback: Callback,
    accept_callback: Callback,
) -> None:
    """Acknowledge the message even if recording the end failed: the job store and the reaper know what was done."""
    called = False

    def call_once(result: Any) -> None:
        nonlocal called
        called = True
        if callback:
            callback(result)

    try:
        apply_target(target, args or (), kwargs, call_once, accept_callback)
    except Exception as error:
        _log.warning("the end of a task could not be recorded (%s: %s)", type(error).__name__, error)
        if called:
            raise
        call_once((True, ExceptionInfo(internal=True), 0.0))
