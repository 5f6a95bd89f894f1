"""The last line of self-healing: a worker that has stopped taking messages ends itself, so that it is started anew.

Celery and kombu find their way back after every loss of connection that we could produce. Should a worker still stay
deaf (celery/celery#8030, #10302), then whoever supervises it sees a living process: only the worker can tell.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from redis import Redis
from redis.exceptions import RedisError

from shared.contract import PRIORITY_STEPS

#: kombu's separator between a queue's name and its priority in Redis.
_PRIORITY_MARK = "\x06\x16"
EXIT_CODE = 70
_log = logging.getLogger(__name__)


def queue_keys(queue: str) -> list[str]:
    """The Redis lists that hold a queue: one for each priority step."""
    return [queue if step == 0 else f"{queue}{_PRIORITY_MARK}{step}" for step in PRIORITY_STEPS]


@dataclass(frozen=True)
class Look:
    """What is seen of a worker at one moment. `received`: messages since its start; `busy`: threads that run a task."""

    waiting: int
    received: int
    busy: int
    threads: int

    @property
    def wanted(self) -> bool:
        """Messages wait and it has a free thread: a healthy worker takes one at once."""
        return self.waiting > 0 and self.busy < self.threads


@dataclass
class Deafness:
    """For how long a worker has taken nothing while it should have. Pure: the caller says what time it is."""

    _since: float | None = None
    _received: int = -1

    def after(self, look: Look, now: float) -> float:
        """Seconds that it has been deaf for; 0 as soon as it takes something or there is nothing to take."""
        if not look.wanted or look.received != self._received:
            self._since = None
        elif self._since is None:
            self._since = now
        self._received = look.received
        return now - self._since if self._since is not None else 0.0

    def unknown(self) -> None:
        """Redis does not answer: nobody can tell, and the outage is not the worker's fault."""
        self._since = None


@dataclass
class Watchdog:
    """Looks at this worker through Redis. `limit_s` 0: it only looks."""

    client: Redis
    queues: Sequence[str]
    received: Callable[[], int]
    busy: Callable[[], int]
    threads: int
    limit_s: float
    deaf_s: float = 0.0
    _deafness: Deafness = field(default_factory=Deafness)

    def look(self, farewell: Callable[[], None]) -> None:
        """Note how long the worker has been deaf; past the limit, say so, call `farewell` and end the process.

        Raises: RedisError.
        """
        try:
            waiting = self._waiting()
        except RedisError:
            self._deafness.unknown()
            self.deaf_s = 0.0
            raise
        look = Look(waiting, self.received(), self.busy(), self.threads)
        self.deaf_s = self._deafness.after(look, time.monotonic())
        if self.limit_s and self.deaf_s >= self.limit_s:
            self._end(look, farewell)

    def _waiting(self) -> int:
        with self.client.pipeline(transaction=False) as pipe:
            for queue in self.queues:
                for key in queue_keys(queue):
                    pipe.llen(key)
            return sum(pipe.execute())

    def _end(self, look: Look, farewell: Callable[[], None]) -> None:
        """At once: the main thread may be what hangs. Work under way is delivered again (acks_late, reaper)."""
        _log.critical(
            "this worker takes no messages: %d wait in %s, %d of %d threads are free, and none was taken for %.0f s; "
            "it ends with code %d, to be started anew",
            look.waiting,
            ", ".join(self.queues),
            look.threads - look.busy,
            look.threads,
            self.deaf_s,
            EXIT_CODE,
        )
        farewell()
        logging.shutdown()
        os._exit(EXIT_CODE)
