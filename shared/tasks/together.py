"""Lets a thread send several messages with one wait for the broker: how, each transport knows for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

End = Callable[[list[Any]], object]


class _Gathered(threading.local):
    """What a thread has sent in its block, with what ends it."""

    by_key: dict[Hashable, tuple[list[Any], End]] | None = None


_gathered = _Gathered()


@contextmanager
def sent_together() -> Iterator[None]:
    """What this thread sends in the block is with the broker when the block ends.

    Raises: RedisError, OperationalError, and what amqp raises, at its end.
    """
    _gathered.by_key = by_key = dict[Hashable, tuple[list[Any], End]]()
    try:
        yield
    finally:
        _gathered.by_key = None
    for messages, end in by_key.values():
        end(messages)


def gathered(key: Hashable, end: End) -> list[Any] | None:
    """Where a transport puts what belongs to `key`; `end` is called with it behind the block. None outside of one."""
    return None if _gathered.by_key is None else _gathered.by_key.setdefault(key, ([], end))[0]
