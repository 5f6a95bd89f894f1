"""Many hosts, each with a worker of every pool: they are cut off and come back, die as a whole, and clocks differ."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

from shared.contract import Queue
from shared.models import JobRequest, Lane
from tests.model.day import QUEUES, Day, _of
from tests.model.fibers import LOST, Fiber
from tests.model.props import SimClock
from tests.model.shapes import Shape

#: Seconds that a heartbeat lasts, that a host is away for, and by which a process may read Redis' clock wrong.
BEAT_S, AWAY_S, SKEW_S = 20.0, (5.0, 90.0), 1.0


class HostClocks(SimClock):
    """Redis' clock as each process reads it: too early or too late, always by the same."""

    def __init__(self, who: Callable[[], str]) -> None:
        super().__init__()
        self._who = who

    def now(self) -> float:
        return super().now() + _skew(self._who())


@cache
def _skew(worker: str) -> float:
    return 0.0 if worker == "client" else random.Random(worker).uniform(-SKEW_S, SKEW_S)


class Fleet(Day):
    """A day of so many hosts. Nobody cancels and nothing is poison: every job must be done."""

    def __init__(self, *args: Any, hosts: int, **options: Any) -> None:
        self._hosts = hosts
        #: Worker -> when it is back; those of them whose connection Redis has given one more message.
        self._away, self._swallowed = dict[str, float](), set[str]()
        super().__init__(*args, workers=len(QUEUES) * hosts, **options)

    def make_clock(self) -> SimClock:
        return HostClocks(lambda: self.current.worker if self.current else "client")

    def ask(self, tenant: str) -> str:
        """A job of this tenant, of a shape by chance."""
        dice, self.tally.jobs = self.dice, self.tally.jobs + 1
        shape = Shape(leaves=dice.randint(0, 3), branches=dice.choice((0, 0, 1)), chain=dice.choice((0, 0, 1)))
        request = JobRequest(question="why?", tenant=tenant, lane=Lane.BATCH, deadline_s=3600, queue_limit_s=3600)
        return self.submit(shape, request)

    def cut_host(self) -> None:
        """No worker of it is heard of for a while, and what they are at stands still."""
        self.tally.faults["hosts cut off"] += 1
        back = self.dice.uniform(*AWAY_S)
        for worker in (cut := self._host()):
            self.cut_off(worker)
            self.signs[worker] = self.true + BEAT_S
            self._away[worker] = self.true + back
        self.at(back, lambda: self._rejoin(cut))

    def _rejoin(self, workers: list[str]) -> None:
        for worker in workers:
            self._swallowed.discard(worker)
            if self._away.pop(worker, None) and worker in self.workers:
                self.signs[worker] = float("inf")

    def lose_host(self) -> None:
        """Its power fails; another one takes its place."""
        self.tally.faults["hosts lost"] += 1
        for worker in self._host():
            self.die(worker)

    def redeliver(self) -> None:
        """Some that are under way come again."""
        for number in list(self.broker.unacked)[:3]:
            self.broker.redeliver(number)

    def _host(self) -> list[str]:
        number = self.dice.randrange(self._hosts)
        return self.workers[number :: self._hosts]

    def wake(self, fiber: Fiber) -> None:
        if (back := self._away.get(fiber.worker)) is not None and not fiber.ended:
            fiber.fault = self.dice.choice(("", LOST))  # its connection may have been given up meanwhile
            self.at(back - self.true + 0.01, lambda: self.wake(fiber))
            return
        super().wake(fiber)

    def _pool(self, queue: Queue) -> list[str]:
        return [worker for worker in super()._pool(queue) if worker not in self._swallowed]

    def _deliver(self, number: int, worker: str) -> None:
        """A connection that is open in Redis' eyes alone is given one message, and no more."""
        if worker not in self._away:
            super()._deliver(number, worker)
            return
        self._swallowed.add(worker)
        self.tally.faults["lost"] += 1
        parcel = self.broker.waiting[number]
        self.broker.lose(number)
        self._lose(_of(parcel))
