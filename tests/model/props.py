"""What the simulated world is furnished with: its clock, each process's watch, threads, and names of work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from orchestrator.reaper.reaper import LOCK, SLOTS
from shared.contract import TaskMessage
from shared.jobs.work import StartedWork
from shared.models.status import DeadLetter
from shared.tasks.signatures import Delivery
from shared.tasks.work_tracker import WorkTracker
from tests.model.fibers import Fiber

if TYPE_CHECKING:
    from tests.model.world import World

START = 1_800_000_000.0
#: Keys that Redis lets expire by its own clock, and after how many seconds: here the world's clock does it.
SHORT_LIVED = {LOCK: 10.0, **dict.fromkeys(SLOTS.values(), 20.0)}


class SimClock:
    """Redis' clock. It may be set; no two readings are the same."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> float:
        self.at += 1e-5
        return self.at


class Watches:
    """Each process has its own."""

    def __init__(self, world: World) -> None:
        self._world, self._of = world, dict[str, WorkTracker]()

    def _mine(self) -> WorkTracker:
        return self._of.setdefault(self._world.worker_id(), WorkTracker(self._world.jobs))

    def tracked(
        self, message: TaskMessage, task: str, came: Delivery, claimant: str = ""
    ) -> AbstractContextManager[StartedWork]:
        if self._world.current is not None:
            self._world.current.at = (message.job_id, message.node_id or task)
        return self._mine().tracked(message, task, came, claimant)

    def poison(self, begun: StartedWork, message: TaskMessage, task: str) -> DeadLetter | None:
        return self._mine().poison(begun, message, task)

    def retire(self, dead_letter: DeadLetter) -> None:
        self._mine().retire(dead_letter)


def item_of(task: str, raw: dict[str, Any]) -> tuple[str, str]:
    """Job and piece of work that a message is about."""
    return raw["job_id"], raw.get("node_id") or task


class SimThread:
    """A thread of a simulated process: a fiber of its own, which may sleep."""

    def __init__(self, world: World, worker: str, target: Callable[[], object]) -> None:
        self._world, self._fiber = world, Fiber(worker, "thread", target, sleeps=True)

    def start(self) -> None:
        """It gets its turn when time passes: whoever starts it may hold a lock that it wants."""
        self._fiber.wakes_at = self._world.true
        self._world.fibers.append(self._fiber)

    def is_alive(self) -> bool:
        return not self._fiber.ended
