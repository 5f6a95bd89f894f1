"""How much of what all callers of one process share, one key and one tenant may take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from orchestrator.access.caller import Caller
from shared.errors import TooManyRequestsError

#: A key or a tenant gets so many at least.
_FEW = 3


class Shares(NamedTuple):
    """How many of `most` places one key and all keys of one tenant may take."""

    key: int
    tenant: int

    @classmethod
    def of(cls, most: int) -> Shares:
        """A quarter for a key, half for a tenant."""
        few = min(most, _FEW)
        return cls(max(few, most // 4), max(few, most // 2))


class Places:
    """`most` places in one process. Callers without a key are the one user of this machine: they may take all.

    `full` is what a caller is told when all are taken.
    """

    def __init__(self, most: int, full: str, retry_after_s: float) -> None:
        self._most, self._full, self._retry_after_s = most, full, retry_after_s
        self._shares = Shares.of(most)
        self._keys, self._tenants = Counter[str](), Counter[str]()
        self._lock = Lock()
        #: How many are taken now.
        self.taken = 0

    @contextmanager
    def take(self, caller: Caller) -> Iterator[None]:
        """One place, until the block ends. Raises: TooManyRequestsError when there is none for this caller."""
        self._enter(caller)
        try:
            yield
        finally:
            self._leave(caller)

    def _enter(self, caller: Caller) -> None:
        with self._lock:
            if fault := self._fault(caller):
                raise TooManyRequestsError(fault, self._retry_after_s)
            self.taken += 1
            if caller.key_id is not None:
                self._keys[caller.key_id] += 1
                self._tenants[caller.tenant] += 1

    def _fault(self, caller: Caller) -> str:
        if self.taken >= self._most:
            return self._full
        if caller.key_id is not None and self._keys[caller.key_id] >= self._shares.key:
            return f"this key has {self._shares.key} of these requests open, its share: wait until one of them ends"
        if caller.key_id is not None and self._tenants[caller.tenant] >= self._shares.tenant:
            return f"this tenant has {self._shares.tenant} of these requests open, its share: wait until one ends"
        return ""

    def _leave(self, caller: Caller) -> None:
        with self._lock:
            self.taken -= 1
            if caller.key_id is not None:
                for counts, name in ((self._keys, caller.key_id), (self._tenants, caller.tenant)):
                    counts[name] -= 1
                    if not counts[name]:
                        del counts[name]
