"""Asks parts of the stack whether they answer, within a bound. Changes nothing."""

from __future__ import annotations

import errno
import socket

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.contract import Queue, TaskName
from shared.errors import InputError
from shared.jobs import connect, reachable
from shared.settings import Settings
from shared.tasks.app import make_app


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


# --- Finds a port of this machine to listen on. A free port may be gone a moment later: callers retry.


def is_free(host: str, port: int) -> bool:
    """True when `port` can be bound on `host` now. Raises: OSError when `host` is no address of this machine."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no obstacle
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:  # taken, or kept for root
                return False
            raise
    return True


def pick(setting: str, host: str, wanted: int, usual: int) -> int:
    """The wanted port; without one (0), the usual port or else any free one.

    Raises: InputError naming `setting` when the wanted port is taken or the host is not this machine's.
    """
    try:
        if wanted:
            if not is_free(host, wanted):
                raise InputError(setting, wanted, f"it is taken on {host}: free it, choose another, or 0 for any")
            return wanted
        return usual if is_free(host, usual) else any_free(host)
    except OSError as error:
        name = f"{setting.split('.', maxsplit=1)[0]}.host"
        raise InputError(name, host, f"give an address of this machine ({error.strerror})") from None


def any_free(host: str) -> int:
    """A port that the system gives."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.bind(address)
        return int(probe.getsockname()[1])
