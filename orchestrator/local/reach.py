"""Asks parts of the stack whether they answer, within a bound. Changes nothing."""

from __future__ import annotations

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.celery_app import make_app
from shared.contract import Queue, TaskName
from shared.job_store import connect, reachable
from shared.settings import Settings


def require_redis(settings: Settings) -> None:
    """Raises: NotRunningError when the Redis that the settings name does not answer PING; SettingsError for no URL."""
    with connect(settings, retries=0) as client, reachable(settings):
        client.ping()


def answering(settings: Settings, expected: int, timeout_s: float = 1.0) -> set[str]:
    """Names of the pools that answer a ping; returns as soon as `expected` have, else after `timeout_s`."""
    # A connection of its own: Celery's pool is shared by the whole process and may hold one to a Redis that is gone.
    with make_app(settings) as app, app.connection_for_write() as line:
        try:
            replies = app.control.ping(timeout=timeout_s, limit=expected, connection=line) or []
        except (OperationalError, RedisError, OSError):
            return set()
    return {node.split("@", 1)[0] for reply in replies for node in reply}


def served(settings: Settings, timeout_s: float) -> dict[str, list[str]]:
    """Queue names by worker, of the workers that answer; takes `timeout_s`, twice where a queue seems to have none.

    A worker that is loading a model or writing to the store may miss the first question.
    Raises: what kombu and Redis raise when the broker is gone.
    """
    found: dict[str, list[str]] = {}
    with make_app(settings) as app, app.connection_for_write() as line:
        for _ in range(2):
            answers = app.control.inspect(timeout=timeout_s, connection=line).active_queues() or {}
            found |= {node: [entry["name"] for entry in entries] for node, entries in answers.items()}
            if {name for names in found.values() for name in names} >= {queue.value for queue in Queue}:
                break
    return found


def ask_store(settings: Settings, timeout_s: float) -> object:
    """What the search worker says about its store (`search.info`). Raises: celery's TimeoutError."""
    with make_app(settings) as app, app.connection_for_write() as line:
        return app.send_task(TaskName.SEARCH_INFO.value, expires=timeout_s, connection=line).get(timeout=timeout_s)
