"""Celery's pool of threads, which here gives back the place of a task whose end could not be recorded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from billiard.einfo import ExceptionInfo
from celery.concurrency import thread
from celery.concurrency.base import apply_target

_log = logging.getLogger(__name__)


class ThreadPool(thread.TaskPool):
    """Stands in for `-P threads`.

    Celery records a task's end in the result backend after its body. When Redis is away just then, that raises out of
    Celery's own code, and the pool of threads drops the error: the task counts as running for ever, its message is not
    acknowledged, and after as many as there are threads the worker takes nothing any more, though it answers.
    """

    def on_apply(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        callback: Callable[..., Any] | None = None,
        accept_callback: Callable[..., Any] | None = None,
        **_: Any,
    ) -> Any:
        """Run `target` on a thread; `callback` hears of its end in every case."""
        own: Any = self
        ways: Any = thread
        return ways.ApplyResult(own.executor.submit(_apply, target, args, kwargs, callback, accept_callback))


def _apply(
    target: Callable[..., Any],
    args: tuple[Any, ...] | None,
    kwargs: dict[str, Any] | None,
    callback: Callable[..., Any] | None,
    accept_callback: Callable[..., Any] | None,
) -> None:
    """What the body did stands in the job store; what it could not do, the reaper sees there. So the message goes."""
    told = False

    def tell(result: Any) -> None:
        nonlocal told
        told = True
        if callback:
            callback(result)

    try:
        apply_target(target, args or (), kwargs, tell, accept_callback)
    except Exception as error:
        _log.warning("the end of a task could not be recorded (%s: %s)", type(error).__name__, error)
        if told:
            raise
        tell((True, ExceptionInfo(internal=True), 0.0))
