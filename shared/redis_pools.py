"""All pools of connections that this process has to Redis, so that what is known of one can help the others."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakSet

_pools: WeakSet[Any] = WeakSet()
_lock = threading.Lock()


def remember(pool: Any) -> None:
    """`pool` is redis-py's ConnectionPool; it is kept no longer than its owner keeps it."""
    with _lock:
        _pools.add(pool)


def drop_idle() -> None:
    """Close the connections that nobody uses now; the next use opens them anew.

    After a connection went silent the others most often have too, and each of them would cost a time-out of its own.
    """
    with _lock:
        pools = list(_pools)
    for pool in pools:
        pool.disconnect(inuse_connections=False)
