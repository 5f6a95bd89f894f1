"""Sends the load while faults happen, and keeps what was promised: an id is an acknowledgement, an error a refusal."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby

from redis.exceptions import RedisError

from orchestrator.client import Ramify
from orchestrator.intake import as_request
from shared.errors import RamifyError
from tests.faults.harness.load import Order
from tests.faults.harness.rig import Rig

#: Seconds that a client tries to cancel a job while Redis is away.
_CANCEL_S = 30.0


@dataclass(frozen=True)
class Acknowledged:
    """A job that the client was given an id for, at this time (Unix seconds)."""

    job_id: str
    order: Order
    at: float


@dataclass
class Sent:
    """What became of the submits of one round."""

    jobs: list[Acknowledged] = field(default_factory=list)
    refused: list[tuple[Order, str]] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)
    twice: list[tuple[str, str]] = field(default_factory=list)  # job id, and what the second submit gave
    cancelled: set[str] = field(default_factory=set)


class Traffic:
    """One round's submits, on one thread; second submits and cancels come due between them."""

    def __init__(self, rig: Rig, orders: Sequence[Order]) -> None:
        self._rig, self._orders = rig, orders
        self.sent = Sent()
        self._later: list[tuple[float, int, Callable[[Ramify], None]]] = []
        self._began = 0.0

    def start(self, pool: ThreadPoolExecutor) -> Future[None]:
        """Begin; the future ends when everything is sent, and raises what went wrong."""
        self._began = time.monotonic()
        return pool.submit(self._run)

    def _run(self) -> None:
        with self._rig.another_client() as client:
            for (at, batch), group in groupby(self._orders, key=lambda order: (order.at, order.batch)):
                self._until(client, at)
                if batch is None:
                    for order in group:
                        self._single(client, order)
                else:
                    self._batch(client, list(group))
            self._until(client, float("inf"))

    def _until(self, client: Ramify, at: float) -> None:
        """Wait for `at` (seconds of the round), doing what comes due before; with infinity, until nothing is left."""
        while (self._later and self._later[0][0] <= at) or at < float("inf"):
            due = min(at, self._later[0][0] if self._later else at)
            time.sleep(max(0.0, self._began + due - time.monotonic()))
            if not self._later or due < self._later[0][0]:
                return
            heapq.heappop(self._later)[2](client)

    def _do_later(self, seconds: float, what: Callable[[Ramify], None]) -> None:
        due = time.monotonic() - self._began + seconds
        heapq.heappush(self._later, (due, len(self._later) + id(what), what))

    def _single(self, client: Ramify, order: Order) -> None:
        try:
            job_id = client.submit(order.ask.request(lane=order.lane, idempotency_key=order.key))
        except RamifyError as error:
            self.sent.refused.append((order, str(error)))
            return
        self.sent.jobs.append(Acknowledged(job_id, order, time.time()))
        if order.again is not None:
            self._do_later(order.again, lambda client: self._again(client, job_id, order))
        if order.cancel_after is not None:
            self._do_later(order.cancel_after, lambda client: self._cancel(client, job_id))

    def _again(self, client: Ramify, job_id: str, order: Order) -> None:
        try:
            second = client.submit(order.ask.request(lane=order.lane, idempotency_key=order.key))
        except RamifyError:
            return  # refused: nothing was promised
        self.sent.twice.append((job_id, second))
        if second != job_id:
            self.sent.jobs.append(Acknowledged(second, order, time.time()))

    def _cancel(self, client: Ramify, job_id: str) -> None:
        end = time.monotonic() + _CANCEL_S
        while True:
            try:
                if client.cancel(job_id):
                    self.sent.cancelled.add(job_id)
            except RamifyError:
                if time.monotonic() < end:
                    time.sleep(0.2)
                    continue
            return

    def _batch(self, client: Ramify, group: list[Order]) -> None:
        try:
            batch_id = client.open_batch()
            self.sent.batches.append(batch_id)
            requests = [as_request(o.ask.request(lane="batch", idempotency_key=o.key)) for o in group]
            ids = [line.job_id or "" for line in client.add_to_batch(batch_id, requests)]
        except (RamifyError, RedisError) as error:
            self.sent.refused += [(order, str(error)) for order in group]
            return
        now = time.time()
        self.sent.jobs += [Acknowledged(job_id, order, now) for job_id, order in zip(ids, group, strict=True)]
