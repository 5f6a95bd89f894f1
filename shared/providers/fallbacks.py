"""Notes what the running task goes on without. Every place with a fallback calls `fell_back`, so that none is silent.

The notes of a task are in a context variable, as its meter is; outside of a task nothing is noted. A job that waits for
servers does not fall back while one fails in a way that may pass: its task is postponed.
"""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager
from contextvars import ContextVar
from threading import Lock
from typing import Literal

from shared.errors import DeadlineError, ReplyError, TransientError
from shared.models.degraded import Degradation
from shared.providers.context import set_within
from shared.providers.metering import BudgetError

#: What an answer can do without.
Helper = Literal["llm", "embedding", "rerank", "store"]
_UNAVAILABLE: dict[Helper, Degradation] = {
    "llm": Degradation.LLM_UNAVAILABLE,
    "embedding": Degradation.EMBEDDING_UNAVAILABLE,
    "rerank": Degradation.RERANK_UNAVAILABLE,
    "store": Degradation.STORE_UNAVAILABLE,
}
_PROVIDERS: dict[Helper, str] = {"llm": "llm", "embedding": "embedding", "rerank": "rerank", "store": "qdrant"}


class PostponedError(BaseException):
    """The running task ends here, and is sent again when `provider` may answer again; `error` is how that failed.

    No Exception, as asyncio.CancelledError is none: a fallback that catches all errors must not go on without either.
    """

    def __init__(self, provider: str, error: TransientError) -> None:
        self.provider, self.error = provider, error
        super().__init__(str(error))


class Fallbacks:
    """What one run of a task went on without. Safe for threads.

    `waits_until` (on `time.monotonic`): until then the task is postponed instead.
    """

    def __init__(self, waits_until: float = -math.inf) -> None:
        self._waits_until = waits_until
        self._lock = Lock()
        self._new: list[Degradation] = []
        #: All that `take` has returned.
        self.taken: frozenset[Degradation] = frozenset()
        self.count = 0

    def note(self, reason: Degradation) -> None:
        """Add a reason."""
        with self._lock:
            self._new.append(reason)
            self.count += 1

    def postpones(self, error: BaseException) -> bool:
        """True while the task is to wait for a server that failed so."""
        return isinstance(error, TransientError) and time.monotonic() < self._waits_until

    def take(self) -> frozenset[Degradation]:
        """The reasons since the last call."""
        with self._lock:
            new, self._new = frozenset(self._new), []
            self.taken |= new
        return new


_FALLBACKS: ContextVar[Fallbacks | None] = ContextVar("ramify_fallbacks", default=None)


def noting(fallbacks: Fallbacks) -> AbstractContextManager[None]:
    """Fallbacks inside are noted in `fallbacks`."""
    return set_within(_FALLBACKS, fallbacks)


def fell_back(helper: Helper, error: BaseException) -> None:
    """The task goes on without `helper`, which failed with `error`. Raises: PostponedError where it is to wait."""
    fallbacks = _FALLBACKS.get()
    if fallbacks is not None and isinstance(error, TransientError) and fallbacks.postpones(error):
        raise PostponedError(error.provider or _PROVIDERS[helper], error) from error
    note_reason(reason_for(helper, error))


def note_reason(reason: Degradation) -> None:
    """The task goes on without something, for this reason."""
    if (fallbacks := _FALLBACKS.get()) is not None:
        fallbacks.note(reason)


def fallbacks_so_far() -> int:
    """How often this task has fallen back: a result made meanwhile must not be cached."""
    fallbacks = _FALLBACKS.get()
    return fallbacks.count if fallbacks else 0


def reason_for(helper: Helper, error: BaseException) -> Degradation:
    """The reason of one failure of a helper."""
    if isinstance(error, BudgetError):
        return Degradation.OVER_BUDGET
    if isinstance(error, DeadlineError):
        return Degradation.OUT_OF_TIME
    if isinstance(error, ReplyError) and helper == "llm":
        return Degradation.LLM_REPLY_UNUSABLE
    return _UNAVAILABLE[helper]
