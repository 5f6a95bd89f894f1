"""A broker that loses, repeats, delays and reorders messages."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from shared.contract import Queue


@dataclass(frozen=True)
class Parcel:
    """A message: a task, what its chain goes on with, and the body of the chord that it is a member of.

    `at`: true seconds. `last`: the task has returned, and says that the body's turn has come.
    """

    task: str
    raw: dict[str, Any]
    priority: int
    task_id: str
    at: float
    rest: tuple[tuple[Any, str], ...] = ()
    chord: Any = None
    last: bool = False
    number: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def queue(self) -> Queue:
        return Queue(self.task.partition(".")[0])


class Broker:
    """`now`: true seconds. `point`: called before every single message, where the sender may be stopped or killed."""

    def __init__(self, now: Callable[[], float], point: Callable[[], None]) -> None:
        self._now, self._point = now, point
        self._ids = itertools.count(1)
        self.waiting: dict[int, Parcel] = {}
        self.unacked: dict[int, Parcel] = {}
        #: Told of every message that a process has sent; it may take it away again.
        self.arrived: Callable[[Parcel], object] = lambda _: None
        #: Told of every message before it waits.
        self.put_away: Callable[[Parcel], object] = lambda _: None

    # -- as Celery sends ---------------------------------------------------------------------------------------

    def send(self, signature: Any, chord: Any = None) -> None:
        """A task, a chain or a chord."""
        if "body" in signature.kwargs and getattr(signature, "tasks", None) is not None:
            self._send_chord(list(signature.tasks), signature.body)
            return
        tasks = getattr(signature, "tasks", None) or [signature]
        self._publish([(task, self._new_id()) for task in tasks], chord or tasks[-1].options.get("chord"))

    def _send_chord(self, header: list[Any], body: Any) -> None:
        if len(header) == 1:  # Celery turns this into a chain
            members = [*(getattr(header[0], "tasks", None) or [header[0]]), *body.tasks]
            self._publish([(task, self._new_id()) for task in members], None)
            return
        for member in header:
            self.send(member, body)

    def follow(self, parcel: Parcel) -> None:
        """The task has returned: its chain goes on, or its chord's body is sent behind the last member."""
        if parcel.rest:
            self._publish(list(parcel.rest), parcel.chord)
        elif parcel.chord and parcel.last:
            self._point()
            self.send(parcel.chord)

    def _publish(self, tasks: list[tuple[Any, str]], chord: Any) -> None:
        self._point()
        (task, task_id), *rest = tasks
        parcel = self.put(
            Parcel(
                task=task.task, raw=dict(task.args[0]), priority=int(task.options["priority"]), task_id=task_id,
                at=self._now(), rest=tuple(rest), chord=chord, headers=dict(task.options.get("headers") or {}),
            )
        )  # fmt: skip
        self.arrived(parcel)

    def put(self, parcel: Parcel) -> Parcel:
        """It waits from now on, behind all others."""
        self.put_away(parcel)
        number = next(self._ids)
        found = self.waiting[number] = replace(parcel, number=number)
        return found

    def _new_id(self) -> str:
        return f"t{next(self._ids)}"

    # -- as workers take ---------------------------------------------------------------------------------------

    def order(self) -> list[int]:
        """Numbers of what waits, as Redis would hand it out: by priority, then the oldest first."""
        return sorted(self.waiting, key=lambda number: (self.waiting[number].priority, number))

    def take(self, number: int) -> Parcel:
        """Not acknowledged until `ack`."""
        parcel = self.unacked[number] = self.waiting.pop(number)
        return parcel

    def ack(self, parcel: Parcel) -> None:
        self.unacked.pop(parcel.number, None)

    def lengths(self) -> dict[Queue, int]:
        """Messages that wait in each queue."""
        counts = Counter(parcel.queue for parcel in self.waiting.values())
        return {queue: counts[queue] for queue in Queue}

    # -- faults ------------------------------------------------------------------------------------------------

    def lose(self, number: int) -> None:
        self.waiting.pop(number, None)

    def repeat(self, number: int) -> None:
        """The same message, a second time: with the same task id."""
        if parcel := self.waiting.get(number) or self.unacked.get(number):
            self.put(parcel)

    def redeliver(self, number: int) -> None:
        """The visibility timeout is over: what nobody acknowledged comes again, though its worker may be at it."""
        if parcel := self.unacked.pop(number, None):
            self.put(parcel)

    def forget_since(self, at: float) -> list[Parcel]:
        """A restart: what was sent after `at` was not on disk yet. Returns what is lost."""
        return [self.waiting.pop(number) for number in self.order() if self.waiting[number].at > at]
