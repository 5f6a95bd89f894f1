"""The stateful test: hypothesis plays the world, and tries to lose work in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shared.jobs.keys import AdmissionKeys, JobKeys
from shared.models import JobRequest, Lane
from tests.model.checks import Checks
from tests.model.fibers import LOST, TWICE, UNHEARD, Fiber
from tests.model.healing import heal
from tests.model.shapes import Shape
from tests.model.world import World

BATCH = "00000000000000batch"
TENANTS = ("ada", "bo")
PICK = st.integers(0, 50)
#: A step takes about ten calls of Redis, a look more.
CALLS = st.integers(0, 1) | st.integers(0, 12) | st.integers(0, 60)
TASKS = st.sampled_from(
    [
        "plan.job",
        "plan.refine",
        "search.leaf",
        "search.shard",
        "rerank.leaf",
        "rerank.columns",
        "merge.tree",
        "rerank.root",
        "merge.summarise",
    ]
)
#: A chord of one leaf is a chain, which goes on to the body whatever the store says.
SHAPES = st.just(Shape(0)) | st.builds(
    Shape, leaves=st.integers(0, 3), branches=st.sampled_from([0, 1, 1, 2]), children=st.sampled_from([1, 2, 2, 3]),
    chain=st.integers(0, 2), searched=st.sampled_from([True, True, True, False]),
    shards=st.sampled_from([0, 0, 1, 2]), columns=st.booleans(),
)  # fmt: skip
REQUESTS = st.builds(
    JobRequest, question=st.just("why?"), tenant=st.sampled_from(TENANTS), lane=st.sampled_from(Lane),
    deadline_s=st.sampled_from([30, 120, 600, 3600]), queue_limit_s=st.sampled_from([20, 120, 3600, 3600]),
)  # fmt: skip


class Machine(RuleBasedStateMachine):
    """Every rule is something that can happen to a running system."""

    make: Callable[..., World]

    def __init__(self) -> None:
        super().__init__()
        self.world = type(self).make(lanes={"under_way": 3})
        self.checks = Checks(self.world.wire)
        self.torn = False

    @initialize(shape=SHAPES)
    def first(self, shape: Shape) -> None:
        self.world.jobs.batches.open(BATCH)
        self.world.submit(shape, JobRequest(question="why?", tenant=TENANTS[0], deadline_s=600))

    # -- what should happen ------------------------------------------------------------------------------------

    @rule(request=REQUESTS, shape=SHAPES, batched=st.booleans(), calls=st.none() | CALLS)
    def submit(self, request: JobRequest, shape: Shape, batched: bool, calls: int | None) -> None:
        if len(self.world.shapes) < 5:
            self.world.submit(shape, request, BATCH if batched else None, calls=calls)

    @rule(messages=st.integers(1, 12), seconds=st.sampled_from([0.1, 2.0]))
    def work_and_look(self, messages: int, seconds: float) -> None:
        self.work(messages)
        self.world.advance(seconds)
        self.world.look()

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.0, 2.0, 5.0, 5.0, 11.0, 21.0, 35.0, 130.0, 700.0]))
    def wait(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(which=st.integers(0, 1), calls=st.none() | st.none() | CALLS)
    def look(self, which: int, calls: int | None) -> None:
        if not any(fiber.worker == self.world.ops[which] for fiber in self.world.fibers):
            self.world.look(which, calls)

    @rule(calls=CALLS, messages=st.integers(0, 20))
    def overlap(self, calls: int, messages: int) -> None:
        """A reaper stands still in its look until another one leads, and then goes on."""
        if any(fiber.worker in self.world.ops for fiber in self.world.fibers):
            return
        old = self.world.look(0, calls)
        self.work(messages)
        self.world.advance(11.0)
        self.world.look(1)
        self.world.resume(old)

    @rule(job=PICK, calls=st.none() | CALLS)
    def cancel(self, job: int, calls: int | None) -> None:
        """Any but the first, ended or not."""
        if ids := list(self.world.shapes)[1:]:
            self.world.cancel(ids[job % len(ids)], calls)

    @rule(job=PICK, calls=st.none() | CALLS)
    def retry(self, job: int, calls: int | None) -> None:
        """What is tried again takes over the leaves that the old one had recorded."""
        ids = list(self.world.shapes)
        if len(ids) < 8:
            self.world.retry(ids[job % len(ids)], calls)

    # -- what may happen ---------------------------------------------------------------------------------------

    @rule(task=TASKS, message=PICK, worker=PICK, calls=CALLS)
    def begin(self, task: str, message: int, worker: int, calls: int) -> None:
        """Any message, not only the next one; its worker stops on the way."""
        if number := self.reach(task, message):
            self.world.deliver(number, self.worker(worker), calls)

    @rule(which=PICK, calls=st.none() | CALLS, fault=st.sampled_from(["", "", LOST, UNHEARD, TWICE]))
    def go_on(self, which: int, calls: int | None, fault: str) -> None:
        if fiber := self.stopped(which):
            fiber.fault = fault
            self.world.resume(fiber, calls)

    @rule(task=TASKS, message=PICK, calls=CALLS, fault=st.sampled_from([LOST, UNHEARD, TWICE]))
    def begin_and_fail(self, task: str, message: int, calls: int, fault: str) -> None:
        """Redis fails in the middle of a step."""
        if number := self.reach(task, message):
            fiber = self.world.deliver(number, self.worker(message), calls)
            fiber.fault = fault
            self.world.resume(fiber)

    @rule(task=TASKS, message=PICK, calls=CALLS, lingers=st.booleans())
    def begin_and_die(self, task: str, message: int, calls: int, lingers: bool) -> None:
        """Its worker is killed between two calls."""
        if number := self.reach(task, message):
            worker = self.worker(message)
            self.world.deliver(number, worker, calls)
            self.world.kill(worker, lingers=lingers)

    @rule(task=TASKS, message=PICK, calls=CALLS)
    def twins(self, task: str, message: int, calls: int) -> None:
        """A message comes twice: the second copy is worked on while the first worker stands still."""
        if number := self.reach(task, message):
            copy = self.world.broker.put(self.world.broker.waiting[number]).number
            first = self.world.deliver(number, self.worker(0), calls)
            self.world.deliver(copy, self.worker(1))
            self.world.resume(first)

    @rule(worker=PICK, lingers=st.booleans(), ops=st.booleans())
    def kill(self, worker: int, lingers: bool, ops: bool) -> None:
        group = self.world.ops if ops else self.world.workers
        self.world.kill(group[worker % len(group)], lingers=lingers)

    @rule(worker=PICK)
    def cut_off(self, worker: int) -> None:
        """It is taken for dead, and goes on later."""
        self.world.cut_off(self.worker(worker))

    @rule(message=PICK, what=st.sampled_from(["lose", "lose", "repeat", "redeliver", "restart"]))
    def disturb(self, message: int, what: str) -> None:
        broker = self.world.broker
        if what == "restart":
            broker.forget_since(self.world.true - 1.0)
        elif what == "redeliver" and broker.unacked:
            broker.redeliver(list(broker.unacked)[message % len(broker.unacked)])
        elif what in {"lose", "repeat"} and (waiting := broker.order()):
            getattr(broker, what)(waiting[message % len(waiting)])

    @rule(away=st.booleans())
    def llm(self, away: bool) -> None:
        """The LLM server fails, or is back."""
        self.world.llm_away = away

    @rule(seconds=st.sampled_from([-3600.0, -30.0, 30.0, 3600.0]))
    def set_clock(self, seconds: float) -> None:
        self.world.clock.at += seconds
        self.checks.clock_runs_true = False

    @rule(which=PICK, every=st.booleans())
    def delete_lines(self, which: int, every: bool) -> None:
        """By hand, or by a Redis that was full: all lists, or one; the counts are then wrong until the next look."""
        if keys := sorted(self.world.wire.keys(f"{AdmissionKeys.tag}*")):
            self.world.wire.delete(*(keys if every else [keys[which % len(keys)]]))
            self.torn = self.torn or not every

    @rule(job=PICK)
    def delete_marks(self, job: int) -> None:
        if open_ := self.world.open_jobs():
            self.world.wire.delete(JobKeys(open_[job % len(open_)]).work)
            self.world.unmarked.add(open_[job % len(open_)])

    @rule(job=PICK, item=PICK)
    def poison(self, job: int, item: int) -> None:
        """Whoever works at this dies of it. Not in the first job: something must be left to be done."""
        if ids := list(self.world.shapes)[1:]:
            job_id = ids[job % len(ids)]
            items = [
                "plan.job",
                "merge.tree",
                "merge.summarise",
                *(node.id for node in self.world.shapes[job_id].first()),
            ]
            self.world.poison.add((job_id, items[item % len(items)]))

    # -- what must hold ----------------------------------------------------------------------------------------

    @invariant()
    def all_counts_are_true(self) -> None:
        self.checks.jobs(self.world.shapes)
        self.checks.batch(BATCH)
        if not self.torn:
            for lane in Lane:
                self.checks.lines(lane, TENANTS)

    def teardown(self) -> None:
        try:
            heal(self.world)
            self.torn = False
            self.all_counts_are_true()
        finally:
            self.world.close()

    # -- small helps -------------------------------------------------------------------------------------------

    def work(self, messages: int) -> None:
        for _ in range(messages):
            if waiting := self.world.broker.order():
                self.world.deliver(waiting[0], self.worker(waiting[0]))

    def reach(self, task: str, which: int, most: int = 40) -> int | None:
        """Work on until messages of `task` wait; the number of one of them. None where none comes."""
        for _ in range(most):
            waiting = self.world.broker.order()
            if found := [number for number in waiting if self.world.broker.waiting[number].task == task]:
                return found[which % len(found)]
            self.work(1)
        return None

    def worker(self, number: int) -> str:
        return self.world.workers[number % len(self.world.workers)]

    def stopped(self, which: int) -> Fiber | None:
        found: list[Any] = [fiber for fiber in self.world.fibers if not fiber.wakes_at]
        return found[which % len(found)] if found else None
