"""A small world around one real Redis: a clock, workers that die and come back, a broker, and the jobs in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import redis
from kombu.exceptions import OperationalError

from orchestrator.reaper.reaper import Reaper
from shared.errors import InputError, TransientError
from shared.jobs import TERMINAL, JobStore, State
from shared.jobs.codec import text
from shared.jobs.keys import JobKeys
from shared.models import JobRequest
from shared.providers.fallbacks import fell_back
from shared.settings import Settings
from shared.tasks.signatures import Dispatcher
from tests.fakes.walked_jobs import enter
from tests.model.broker import Broker, Parcel
from tests.model.fibers import Fiber, Killed
from tests.model.props import SHORT_LIVED, START, SimClock, SimThread, Watches, item_of
from tests.model.shapes import Labour, Shape
from tests.model.stage import Stage
from tests.model.wire import Wire


class World:
    """`true` seconds run on whatever the clock of Redis says. Not to be used once `close` was called.

    `split`: what is sent to Redis in one go without MULTI may be torn apart.
    """

    #: Work takes time: who does it sleeps.
    sleeps = False

    def __init__(self, stage: Stage, wire: Wire, settings: Settings, workers: int = 3, *, split: bool = True) -> None:
        self.stage, self.wire, self.split = stage, wire, split
        self.clock, self.true = self.make_clock(), START
        self.current: Fiber | None = None
        self.jobs = JobStore(wire, settings, clock=self.clock)
        self.broker = Broker(lambda: self.true, self.point)
        self.watches = Watches(self)
        self.shapes = dict[str, Shape]()
        self.labour = Labour(self.shapes.__getitem__, lambda: self.current.at if self.current else ("", ""), self.work)
        self.poison = set[tuple[str, str]]()
        #: The LLM does not answer: work of batch jobs waits for it, other work goes on without.
        self.llm_away = False
        #: Work of which there were two messages at once, and jobs whose marks were deleted: their marks prove nothing.
        self.crowded, self.unmarked = set[tuple[str, str]](), set[str]()
        self.fibers = list[Fiber]()
        self._ids, self._generation = itertools.count(1), itertools.count(1)
        self.signs = dict[str, float]()
        self.workers = [self._born(f"w{number}") for number in range(workers)]
        self.ops = [self._born(f"ops{number}") for number in range(2)]
        self._seen = dict[str, tuple[bytes, float]]()
        self.broker.put_away = self._note
        wire.traffic = self
        wire.flushall()
        stage.enter(self)

    def make_clock(self) -> SimClock:
        """That of all processes."""
        return SimClock()

    def close(self) -> None:
        """No thread is left behind."""
        for fiber in self.fibers:
            fiber.kill()

    # -- what the patched code asks ----------------------------------------------------------------------------

    def call(self, function: Callable[[], Any]) -> Any:
        if self.current is None:
            return function()
        self.point()
        return self.current.call(function)

    def point(self) -> None:
        if self.current is not None:
            self.current.point()

    def send(self, signature: Any) -> None:
        if self.current is not None and self.current.worker in self.ops:
            self._is_needed(signature)
        self.broker.send(signature)

    def _is_needed(self, signature: Any) -> None:
        """What a worker that lives is at must not be sent again: it has said so, unless its mark was overwritten."""
        first = (getattr(signature, "tasks", None) or [signature])[0]
        what = item_of(first.task, first.args[0])
        at_it = [fiber for fiber in self.fibers if fiber.at == what and fiber.calls > 1 and not fiber.doubtful]
        if living := self.living(fiber.worker for fiber in at_it):
            known = what in self.crowded or what[0] in self.unmarked
            assert known, f"{what} was sent again, though {', '.join(living)} is at it"

    def _note(self, parcel: Parcel) -> None:
        what = item_of(parcel.task, parcel.raw)
        others = [*self.broker.waiting.values(), *self.broker.unacked.values()]
        if any(item_of(other.task, other.raw) == what for other in others):
            self.crowded.add(what)

    def worker_id(self) -> str:
        return self.current.worker if self.current else "client"

    def living(self, ids: Iterable[str]) -> frozenset[str]:
        return frozenset(worker for worker in ids if self.signs.get(worker, 0.0) > self.true)

    def work(self, job_id: str, item: str) -> None:
        """The work itself: it kills who does it, if it is poison, and asks the LLM."""
        self.point()
        if self.llm_away:
            fell_back("llm", TransientError("the LLM server at h answered 500"))
        if (job_id, item) in self.poison and self.current is not None:
            self.kill(self.current.worker)
            raise Killed

    def thread(self, target: Callable[[], object]) -> SimThread:
        return SimThread(self, self.worker_id(), target)

    def sleep(self, seconds: float) -> None:
        assert self.current is not None
        self.current.wakes_at = self.true + seconds
        self.current.pause()

    # -- processes ---------------------------------------------------------------------------------------------

    def _born(self, name: str) -> str:
        worker = f"{name.partition('@')[0]}@sim:{next(self._generation)}"
        self.signs[worker] = float("inf")
        return worker

    def run(self, worker: str, name: str, function: Callable[[], object], calls: int | None = None) -> Fiber:
        """A process begins something; it stops after so many calls, or runs to the end."""
        fiber = Fiber(worker, name, function, sleeps=self.sleeps and worker in self.workers)
        self.fibers.append(fiber)
        self.resume(fiber, calls)
        return fiber

    def resume(self, fiber: Fiber, calls: int | None = None) -> None:
        """Let a stopped one go on. A worker that was cut off is there again."""
        if self.signs.get(fiber.worker) == 0.0:
            self.signs[fiber.worker] = float("inf")
        before, self.current = self.current, fiber
        try:
            fiber.resume(calls)
        finally:
            self.current = before
        self.fibers = [one for one in self.fibers if not one.ended]

    def kill(self, worker: str, *, lingers: bool = False) -> None:
        """A process dies, with all that it was at, and a new one takes its place. `lingers`: its heartbeat does."""
        for fiber in self.fibers:
            if fiber.worker == worker:
                fiber.killed = True
                if fiber is not self.current:
                    fiber.kill()
        self.fibers = [one for one in self.fibers if not one.ended]
        self.signs[worker] = self.true + 20.0 if lingers else -1.0
        for group in (self.workers, self.ops):
            if worker in group:
                group[group.index(worker)] = self._born(worker)

    def cut_off(self, worker: str) -> None:
        """It lives, but nobody sees it; what it was at goes on when it is resumed."""
        self.signs[worker] = 0.0
        for fiber in self.fibers:
            fiber.doubtful = fiber.doubtful or fiber.worker == worker

    # -- what happens in it ------------------------------------------------------------------------------------

    def deliver(self, number: int, worker: str, calls: int | None = None) -> Fiber:
        """A worker takes a message."""
        parcel = self.broker.take(number)
        return self.run(worker, parcel.task, lambda: self._carry_out(parcel), calls)

    def _carry_out(self, parcel: Parcel) -> None:
        with suppress(redis.RedisError, OperationalError):  # Celery notes the failure, and acknowledges all the same
            done = self.stage.run(parcel)
            if self.current is not None:
                self.current.doubtful = True
            self.point()
            self.broker.follow(done)
        self.broker.ack(parcel)

    def look(self, which: int = 0, calls: int | None = None) -> Fiber:
        """A reaper looks once."""
        return self.run(self.ops[which], "reaper", self._look, calls)

    def _look(self) -> None:
        with suppress(redis.RedisError, OperationalError):
            Reaper(self.stage.app, self.jobs).run()

    def retry(self, job_id: str, calls: int | None = None) -> None:
        """A client tries again what has ended without a whole answer."""
        job = self.jobs.job(job_id)
        if job is not None and job.terminal and self.wire.hget(JobKeys(job_id).job, "partial") != b"0":
            self.submit(self.shapes[job_id], job.request, calls=calls, retry_of=job_id)

    def submit(
        self,
        shape: Shape,
        request: JobRequest,
        batch: str | None = None,
        *,
        calls: int | None = None,
        retry_of: str = "",
    ) -> str:
        """A client enqueues a job, and sends it if there is room. Returns its id."""
        job_id = f"{next(self._ids):013x}feedbeef"
        self.shapes[job_id] = shape

        def enqueue() -> None:
            with suppress(redis.RedisError, OperationalError, InputError):  # another client was quicker
                if batch:
                    enter(self.jobs, batch, [(job_id, request)], retry_of=retry_of)
                else:
                    self.jobs.enqueue([(job_id, request)], {job_id: retry_of} if retry_of else None)
                Dispatcher(self.stage.app, self.jobs).run()

        self.run("client", "submit", enqueue, calls)
        return job_id

    def cancel(self, job_id: str, calls: int | None = None) -> None:
        """Somebody ends a job."""

        def stop() -> None:
            with suppress(redis.RedisError):
                self.jobs.endings.stop([job_id], State.CANCELLED, "cancelled by the caller")

        self.run("client", "cancel", stop, calls)

    def advance(self, seconds: float) -> None:
        """Time passes: sleepers wake, and keys expire."""
        self.true += seconds
        self.clock.at += seconds
        self._expire()
        for fiber in [one for one in self.fibers if 0 < one.wakes_at <= self.true]:
            fiber.wakes_at = 0.0
            self.resume(fiber)

    def _expire(self) -> None:
        values = self.wire.mget(list(SHORT_LIVED))
        for (key, ttl), value in zip(SHORT_LIVED.items(), values, strict=True):
            held, since = self._seen.get(key, (None, 0.0))
            if value is None or value != held:
                self._seen[key] = (value, self.true)
            elif self.true - since >= ttl:
                self.wire.delete(key)

    def open_jobs(self) -> list[str]:
        """Ids of the jobs that exist and have not ended."""
        states = [(job_id, self.wire.hget(JobKeys(job_id).job, "state")) for job_id in self.shapes]
        return [job_id for job_id, state in states if state is not None and State(text(state)) not in TERMINAL]
