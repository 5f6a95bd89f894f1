"""Micro-batching: joins scoring requests that several threads make within a few milliseconds. Knows no model.

It has no thread of its own: the first requester waits, runs the batch and hands out the results.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from shared.errors import RamifyError, TransientError
from shared.providers.rerankers.scoring import Request
from shared.tracing.spans import linked

#: Scores as many of the open texts as it can by the deadline given; the cost goes to the first request.
Run = Callable[[Sequence[Request], float], None]


@dataclass(slots=True, eq=False)
class _Batch:
    requests: list[Request]
    closed: bool = False
    fault: RamifyError | None = None
    ended: threading.Event = field(default_factory=threading.Event)


class CallBatcher:
    """Joins requests of one key within `window_s` seconds and runs them together.

    A batch ends at the shortest deadline among its requests; those with time left and texts open join a new one. When a
    batch of several fails, each goes on alone: one request that cannot be served fails nobody else. With
    `one_at_a_time` batches wait for each other, and grow while they wait.
    """

    def __init__(
        self, run: Run, window_s: float, key: Callable[[Request], Hashable], *, one_at_a_time: bool = False
    ) -> None:
        self._run, self._window_s, self._key = run, window_s, key
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, _Batch] = {}
        self._running = threading.Lock() if one_at_a_time else None

    def score(self, request: Request) -> None:
        """Fill `request`, together with others or alone, by its deadline.

        Raises: TransientError when the time is up, and what `run` raises; what was scored until then is kept.
        """
        while request.open():
            request.seconds_left()
            if self._window_s <= 0:
                self._alone(request)
                continue
            batch = self._join(request)
            if batch.requests[0] is request:
                self._lead(batch)
            elif not batch.ended.wait(max(0.0, request.deadline - time.monotonic())):
                self._leave(batch, request)
                continue
            if batch.fault is not None and request.open():
                if len(batch.requests) == 1:
                    raise batch.fault
                request.seconds_left()
                self._alone(request)

    def _alone(self, request: Request) -> None:
        with self._turn(request):
            self._run([request], request.deadline)

    def _join(self, request: Request) -> _Batch:
        key = self._key(request)
        with self._lock:
            batch = self._waiting.get(key)
            if batch is None:
                batch = self._waiting[key] = _Batch([request])
            else:
                batch.requests.append(request)
            return batch

    def _lead(self, batch: _Batch) -> None:
        leader = batch.requests[0]
        try:
            time.sleep(max(0.0, min(self._window_s, leader.deadline - time.monotonic())))
            with self._turn(leader):
                self._close(batch)
                with linked([request.traceparent for request in batch.requests[1:]]):
                    self._run(batch.requests, min(request.deadline for request in batch.requests))
        except RamifyError as error:
            batch.fault = error
        finally:
            self._close(batch)
            batch.ended.set()

    def _close(self, batch: _Batch) -> None:
        """After this no request joins or leaves the batch."""
        with self._lock:
            if not batch.closed:
                batch.closed = True
                del self._waiting[self._key(batch.requests[0])]

    def _leave(self, batch: _Batch, request: Request) -> None:
        with self._lock:
            if not batch.closed:
                batch.requests.remove(request)

    @contextmanager
    def _turn(self, request: Request) -> Iterator[None]:
        if self._running is not None and not self._running.acquire(timeout=request.seconds_left()):
            raise TransientError("the time was up before it was this question's turn")
        try:
            yield
        finally:
            if self._running is not None:
                self._running.release()
