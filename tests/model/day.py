"""A day of the simulated world: jobs arrive and things go wrong all the time. Event driven, seeded."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from shared.contract import Queue
from shared.jobs import TERMINAL, State
from shared.jobs.keys import JobKeys
from shared.models import JobRequest, Lane
from tests.model.broker import Parcel
from tests.model.fibers import Fiber, Killed
from tests.model.rates import Rates, Tally
from tests.model.shapes import Shape
from tests.model.world import World

HOUR = 3600.0
LOOK_S = 2.0
TENANTS = ("ada", "bo", "cy", "dee")
QUEUES = (Queue.PLAN, Queue.SEARCH, Queue.RERANK, Queue.MERGE)
#: Threads of a worker, and how long messages that nobody acknowledged stay away (s).
THREADS, VISIBILITY_S = 4, 900.0


class Day(World):
    """Runs by events: `at` puts one into the future, `run_until` lets them happen."""

    sleeps = True

    def __init__(self, *args: Any, seed: int, rates: Rates | None = None, workers: int = 8, **options: Any) -> None:
        self.dice, self.rates, self.tally = random.Random(seed), rates or Rates(), Tally()
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._lost = dict[tuple[str, str], float]()
        self.due, self.cancelled, self.open = dict[str, float](), set[str](), True
        super().__init__(*args, workers=workers, split=False, **options)
        self.broker.arrived = self._arrived

    # -- time --------------------------------------------------------------------------------------------------

    def at(self, seconds: float, happen: Callable[[], object]) -> None:
        """In so many seconds."""
        heapq.heappush(self._events, (self.true + seconds, next(self._numbers), happen))

    def every(self, mean: float, happen: Callable[[], object]) -> None:
        """Again and again, at random."""

        def again() -> None:
            happen()
            self.every(mean, happen)

        self.at(self.dice.expovariate(1 / mean), again)

    def stop_arrivals(self) -> None:
        """No more jobs; all else goes on."""
        self.open = False

    def run_until(self, end: float) -> None:
        """Let everything happen that is due by then (true seconds)."""
        while self._events and self._events[0][0] <= end:
            due, _, happen = heapq.heappop(self._events)
            self._pass(due)
            happen()
            self._serve()
        self._pass(end)

    def _pass(self, until: float) -> None:
        self.clock.at += max(0.0, until - self.true)
        self.true = max(self.true, until)

    def sleep(self, seconds: float) -> None:
        fiber = self.current
        assert fiber is not None
        self.at(seconds, lambda: self.wake(fiber))
        fiber.pause()

    def wake(self, fiber: Fiber) -> None:
        """One that slept goes on, if its process still lives."""
        if not fiber.ended:
            self.resume(fiber)

    # -- what goes wrong ---------------------------------------------------------------------------------------

    def point(self) -> None:
        fiber = self.current
        if fiber is None:
            return
        fiber.point()
        chance = self.dice.random()
        if chance < self.rates.death and fiber.worker != "client":
            self.die(fiber.worker)
            raise Killed
        if fiber.sleeps and chance > 1 - self.rates.stall:
            self.tally.faults["stalls"] += 1
            if self.dice.random() < self.rates.cut_off:
                self.cut_off(fiber.worker)
            self.sleep(self.dice.uniform(1, 90))

    def work(self, job_id: str, item: str) -> None:
        """The work itself takes time, now and then a lot."""
        assert self.current is not None
        self.current.worked = True
        if (job_id, item) in self.poison:
            self.die(self.current.worker)
            raise Killed
        self.sleep(self.dice.uniform(0.1, 2.0) * (10 if self.dice.random() < 0.02 else 1))

    def die(self, worker: str) -> None:
        """A worker, or a reaper, is killed: what it was at has to be found and sent again."""
        self.tally.faults["deaths"] += 1
        at = [fiber.at for fiber in self.fibers if fiber.worker == worker and fiber.at[0]]
        self.kill(worker, lingers=self.dice.random() < 0.5)
        for what in at:
            self._lose(_known_as(*what))

    def _lose(self, what: tuple[str, str]) -> None:
        """Work is lost, if it was still to be done and there is no other message of it."""
        state, node = self.wire.hget(JobKeys(what[0]).job, "state"), self.wire.hget(JobKeys(what[0]).leaves, what[1])
        messages = [*self.broker.waiting.values(), *(fiber_at for fiber_at in self.fibers if fiber_at.at[0])]
        known = {_of(one) if isinstance(one, Parcel) else _known_as(*one.at) for one in messages}
        over = state is None or State(state.decode()) in TERMINAL or node in {b"done", b"failed", b"grown"}
        if not over and what not in known:
            self._lost.setdefault(what, self.true)

    def restart(self) -> None:
        """Redis comes back without what the broker was given in the last second."""
        self.tally.faults["restarts"] += 1
        for parcel in self.broker.forget_since(self.true - 1.0):
            self._lose(_of(parcel))

    def _arrived(self, parcel: Parcel) -> None:
        """A message has been sent."""
        if (since := self._lost.pop(_of(parcel), None)) is not None:
            self.tally.recoveries.append(self.true - since)
        chance, rates = self.dice.random(), self.rates
        if chance < rates.lost:
            self.tally.faults["lost"] += 1
            self.broker.lose(parcel.number)
            self._lose(_of(parcel))
        elif chance < rates.lost + rates.repeated:
            self.tally.faults["repeated"] += 1
            self.broker.put(parcel)
        elif chance < rates.lost + rates.repeated + rates.delayed:
            self.tally.faults["delayed"] += 1
            self.broker.lose(parcel.number)
            self.at(self.dice.uniform(1, 120), lambda: self.broker.put(parcel))

    # -- what should happen ------------------------------------------------------------------------------------

    def arrive(self) -> None:
        """One job."""
        if not self.open:
            return
        self.tally.jobs += 1
        dice, job_id = self.dice, f"{self.tally.jobs:013x}feedbeef"
        deadline = dice.choice((30.0, 60.0, 120.0, 300.0, 600.0, 3600.0))
        shape = Shape(
            leaves=dice.randint(0, 4), branches=dice.choice((0, 0, 1, 2)), children=dice.randint(1, 3),
            chain=dice.choice((0, 0, 1, 2)), searched=dice.random() > 0.02,
            shards=dice.choice((0, 0, 0, 2)), columns=dice.random() > 0.5,
        )  # fmt: skip
        request = JobRequest(
            question="why?", tenant=dice.choice(TENANTS), lane=dice.choice(list(Lane)), deadline_s=deadline,
            queue_limit_s=deadline,
        )  # fmt: skip
        if dice.random() < self.rates.poison and (nodes := shape.first()):
            self.tally.faults["poison"] += 1
            self.poison.add((job_id, dice.choice(nodes).id))
        assert self.submit(shape, request) == job_id
        self.due[job_id] = self.clock.at + 2 * deadline
        if dice.random() < self.rates.cancel:
            self.tally.faults["cancelled"] += 1
            self.cancelled.add(job_id)
            self.at(dice.uniform(0.5, 20), lambda: self.cancel(job_id))

    def calm(self, job_id: str) -> bool:
        """True for a job that had ten minutes at least, and that nobody cancelled or poisoned: it must be done."""
        enough = self.due[job_id] - self.wire_time(job_id) >= 600.0
        return enough and job_id not in self.cancelled and all(job_id != one for one, _ in self.poison)

    def wire_time(self, job_id: str) -> float:
        """When a job was created."""
        return float(self.wire.hget(JobKeys(job_id).job, "created_at") or 0.0)

    def look_around(self) -> None:
        """Every 2 s. While no job is open a look changes nothing (there is a test of that), so it is not taken."""
        if self.wire.zcard("ramify:active"):
            self._expire()
            self.tally.looks += 1
            self.look(self.tally.looks % 2)
        self.at(LOOK_S, self.look_around)

    def _serve(self) -> None:
        """Free threads take what waits, in order, or nearly."""
        busy = Counter(fiber.worker for fiber in self.fibers)
        for number in self.broker.order():
            free = [worker for worker in self._pool(self.broker.waiting[number].queue) if busy[worker] < THREADS]
            if not free or number not in self.broker.waiting:
                continue
            if self.dice.random() < self.rates.reordered:
                continue
            worker = self.dice.choice(free)
            busy[worker] += 1
            self._deliver(number, worker)

    def _pool(self, queue: Queue) -> list[str]:
        """The workers of one of the four queues of jobs: a quarter of all."""
        each = len(self.workers) // len(QUEUES)
        place = each * QUEUES.index(queue)
        return self.workers[place : place + each]

    def _deliver(self, number: int, worker: str) -> None:
        self.tally.deliveries += 1
        self.at(VISIBILITY_S, lambda: self.broker.redeliver(number))
        fiber = self.deliver(number, worker)
        self.tally.wasted += fiber.ended and not fiber.worked


def _of(parcel: Parcel) -> tuple[str, str]:
    return _known_as(parcel.raw["job_id"], parcel.raw.get("node_id") or parcel.task)


def _known_as(job_id: str, item: str) -> tuple[str, str]:
    """The body is sent again as a whole, whichever of its steps was lost."""
    return job_id, "body" if item in {"merge.tree", "rerank.root", "merge.summarise"} else item
