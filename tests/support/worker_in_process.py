"""A Celery worker in a thread of the tests' process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from celery import Celery
from celery.contrib.testing.worker import start_worker

from shared.tasks import app as apps


@contextmanager
def worker_in_process(
    app: Celery, queues: Sequence[str], *, pool: str, concurrency: int = 1, loglevel: str = "error"
) -> Iterator[None]:
    """It works until the block ends, and so does its heartbeat: a pool of one process says no shutdown of its own."""
    try:
        with start_worker(
            app, pool=pool, concurrency=concurrency, queues=list(queues), loglevel=loglevel, perform_ping_check=False
        ):
            yield
    finally:
        apps.end_heartbeat()
        apps._OwnHeartbeat.heartbeat, apps._OwnHeartbeat.pid = None, 0
