"""A bounded memory of one process: the values used last, up to a number of bytes. Knows nothing of what it holds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ByteCache(Generic[K, V]):
    """Threads may share it. A value that is larger than all of it is not kept."""

    def __init__(self, most: int) -> None:
        """`most`: bytes, by the sizes that are given with the values."""
        self._most, self._bytes = most, 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, which is now the one used last; None where it is not known (any more)."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def find(self, keys: Iterable[K]) -> dict[K, V]:
        """Those of the values that are known; they are now the ones used last."""
        with self._lock:
            values = self._values
            found = {key: known[0] for key in keys if (known := values.get(key)) is not None}
            for key in found:
                values.move_to_end(key)
        return found

    def keep(self, key: K, value: V, size: int) -> None:
        """Keep a value of `size` bytes; those used longest ago go for it."""
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self._values[key] = value, size
            self._bytes += size - before
            while self._bytes > self._most:
                _, (_, gone) = self._values.popitem(last=False)
                self._bytes -= gone

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self._bytes = 0
