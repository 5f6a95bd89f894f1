"""The shared board where Redis answers, else the one of this process. Never fails a call."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from redis.exceptions import RedisError

from shared.errors import RamifyError
from shared.gates.board import Answer, Ask, Board, Report, Terms

#: After Redis was lost it is left alone for so long (s).
_REST_S = 5.0
_log = logging.getLogger("ramify.gates")
T = TypeVar("T")


class FallbackBoard:
    """The shared board; while Redis is away the local one. The log says so once, and once when Redis is back."""

    def __init__(self, shared: Board, local: Board) -> None:
        self._shared, self._local = shared, local
        self._lock = Lock()
        self._away, self._rest_until = False, 0.0

    def enter(self, name: str, terms: Terms, ask: Ask) -> Answer:
        """As the shared board. Never raises."""
        return self._either(lambda board: board.enter(name, terms, ask))

    def leave(self, name: str, terms: Terms, report: Report) -> str:
        """As the shared board. Never raises."""
        return self._either(lambda board: board.leave(name, terms, report))

    def _either(self, call: Callable[[Board], T]) -> T:
        if not self._due():
            return call(self._local)
        try:
            answer = call(self._shared)
        except (RedisError, RamifyError, OSError, ValueError) as error:
            self._lost(error)
            return call(self._local)
        if self._away:
            with self._lock:
                self._away = False
            _log.info("Redis holds the rate limits and circuit breakers of all workers again")
        return answer

    def _due(self) -> bool:
        """While Redis is away one call in a while looks after it; the others do not wait for its time-out."""
        with self._lock:
            now = time.monotonic()
            if now < self._rest_until:
                return False
            if self._away:
                self._rest_until = now + _REST_S
            return True

    def _lost(self, error: Exception) -> None:
        with self._lock:
            told, self._away = self._away, True
            self._rest_until = time.monotonic() + _REST_S
        if not told:
            kind = type(error).__name__
            _log.warning("Redis does not hold the rate limits and circuit breakers (%s): each process is its own", kind)
