"""Clients that set a key of a wrong type aside, instead of failing at it each time.

Anybody who can write to Redis, such as another program on the same server, can put a string where a queue or an index
belongs: every command on it then fails until somebody deletes it, in a worker's event loop many times a second. What
is wrong with the keys of one job costs that job alone (`shared/jobs/damaged.py`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError, ResponseError

from shared.connections.key_types import KEY_TYPES
from shared.connections.quarantine import Quarantine

#: Seconds between two searches for the keys that scripts make of a prefix.
_SEARCH_S = 5.0
#: How often a command is tried again at most.
_TRIES = 2
_PAGE, _LONGEST_NAME = 1000, 500
_log = logging.getLogger("ramify.quarantine")


class _LastSearch:
    at = -_SEARCH_S
    lock = threading.Lock()


def mended(client: Redis, names: Iterable[object] = ()) -> bool:
    """Set keys of a wrong type aside, after a reply that is `wrong_type`. True when there were any.

    `names`: arguments of the command, which may be names of keys.
    """
    plain = Redis(connection_pool=client.connection_pool)
    fixed, given = {name: kind for name, kind in KEY_TYPES.items() if name[-1] != "*"}, _names(names)
    try:
        take = Quarantine(plain).take_wrong_keys
        return bool(take({**fixed, **_typed(given)}) or take(_typed(_search(plain, given))))
    except (RedisError, ValueError, TypeError) as second:
        _log.error("a key of Redis holds the wrong type and cannot be set aside (%s)", type(second).__name__)
        return False


def _names(values: Iterable[object]) -> frozenset[str]:
    """Those of the arguments of a command that may be names of keys."""
    texts = (value.decode(errors="replace") if isinstance(value, bytes) else value for value in values)
    return frozenset(text for text in texts if isinstance(text, str) and len(text) <= _LONGEST_NAME)


def _typed(names: Iterable[str]) -> dict[str, str]:
    """The types of those names that are declared by their beginning."""
    begins = {name[:-1]: kind for name, kind in KEY_TYPES.items() if name[-1] == "*"}
    return {name: kind for name in names for begin, kind in begins.items() if name.startswith(begin) and name != begin}


def _search(client: Redis, names: frozenset[str]) -> Iterator[str]:
    """All keys with a beginning that a script was given to make names of, now and then."""
    begins = [name[:-1] for name in KEY_TYPES if name[-1] == "*" and name[:-1] in names]
    with _LastSearch.lock:
        now = time.monotonic()
        if not begins or now - _LastSearch.at < _SEARCH_S:
            return
        _LastSearch.at = now
    for begin in begins:
        for name in client.scan_iter(match=f"{begin}*", count=_PAGE):
            yield name.decode(errors="replace")


def wrong_type(error: object) -> bool:
    """Whether a reply of Redis says that a key is of another type than the command is for."""
    return isinstance(error, ResponseError) and "WRONGTYPE" in str(error)


def _mending(call: Callable[[], Any], client: Redis, names: Sequence[object]) -> Any:
    """The reply of `call`, tried again while keys of a wrong type are in its way. Raises: what it raises at last.

    Where none is found it is tried once more: another process may have set it aside meanwhile.
    """
    idle = False
    for _ in range(_TRIES):
        try:
            return call()
        except ResponseError as error:
            if not wrong_type(error) or (not mended(client, names) and idle):
                raise
            idle = True
    return call()


class MendingPipeline(Pipeline):
    """What does not run because of a key of a wrong type runs once more, when that key has been set aside."""

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """As redis-py's. Raises: RedisError."""
        stack, scripts = list(self.command_stack), set(self.scripts)
        names = [name for args, _ in stack for name in args[1:]]

        def call() -> list[Any]:
            self.command_stack, self.scripts = list(stack), set(scripts)
            return super(MendingPipeline, self).execute(raise_on_error)

        def checked() -> list[Any]:
            replies = call()
            if wrong := next(filter(wrong_type, replies), None):
                raise wrong
            return replies

        if raise_on_error:
            return list(_mending(call, self, names))
        with suppress(ResponseError):
            return list(_mending(checked, self, names))
        return call()

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """As redis-py's, of a command after WATCH. Raises: RedisError."""
        return _mending(partial(super().immediate_execute_command, *args, **options), self, args[1:])


class MendingClient(Redis):
    """As redis-py's client otherwise."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """As redis-py's. Raises: RedisError."""
        return _mending(partial(super().execute_command, *args, **options), self, args[1:])

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> MendingPipeline:
        """As redis-py's."""
        return MendingPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)
