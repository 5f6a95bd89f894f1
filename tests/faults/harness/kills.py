"""Kills processes by a seed's dice, and notes what each had in its hands: that is what has to come back."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from redis.exceptions import RedisError

from shared.contract import POOL_QUEUES
from tests.faults.harness.rig import POOLS, Rig
from tests.support.waiting import last

#: States in which a leaf's work is still to be done, by task.
LEAF_TASKS = {
    "search.leaf": ("pending",),
    "search.shard": ("pending",),
    "rerank.leaf": ("pending", "searched"),
    "rerank.columns": ("searched",),
}


_LEAF_POOLS = ("search", "rerank")


class Piece(NamedTuple):
    """What a worker was at when it died: one leaf's search or rerank, or a job's step (`node` is None)."""

    task: str
    job_id: str
    node: str | None


@dataclass
class Kill:
    """One kill: when (Unix seconds), what, and the work that died with it."""

    at: float
    name: str
    pid: int
    held: list[Piece] = field(default_factory=list)


class Kills:
    """Kills one process a second while it is told to."""

    def __init__(self, rig: Rig, dice: random.Random) -> None:
        self._rig, self._dice = rig, dice
        self.done: list[Kill] = []

    def per_pool(self) -> Counter[str]:
        """How often each was killed."""
        return Counter(kill.name for kill in self.done)

    def storm(self, seconds: float, stop: threading.Event, every: float = 1.0, pools: Sequence[str] = POOLS) -> None:
        """A random worker every `every` seconds, for `seconds`; every second time one when it has work in its hands.

        Only what takes work is a worker: a process that is still starting is left to it, and a second may pass without
        a kill. Else a machine that starts processes more slowly than they are killed never gets to work at all.
        """
        end, due = time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < end and not stop.wait(max(0.0, due - time.monotonic())):
            due += every
            busy = self._dice.random() < 0.5
            names = [name for name in self._dice.sample(pools, len(pools)) if self._rig.serving(name)]
            if busy and (at_work := last(partial(self._stopped_at_work, names), every / 2, 0.005)):
                names.insert(0, at_work)
            any(self.kill(name) for name in names)

    def _stopped_at_work(self, names: Sequence[str]) -> str:
        """A worker with work in its hands, which is stopped; "" when none has.

        Those of leaves are asked first: their work is so short that it is hardly hit else.
        """
        for name in sorted(names, key=lambda name: name not in _LEAF_POOLS):
            if name in POOL_QUEUES and (pid := self._rig.signal(name, signal.SIGSTOP)) is not None:
                held = list[Piece]()
                with suppress(RedisError):
                    held = self._held_by(pid)
                if held:
                    return name
                self._rig.signal(name, signal.SIGCONT)
        return ""

    def kill(self, name: str) -> bool:
        """Kill one process now. False when it does not live."""
        at = time.time()
        pid = self._rig.signal(name, signal.SIGKILL)
        if pid is None:
            return False
        kill = Kill(at, name, pid)
        self.done.append(kill)
        if name in POOL_QUEUES:
            with suppress(RedisError):  # it may be away as well: then nobody can say what was held
                kill.held = self._held_by(pid)
        return True

    def _held_by(self, pid: int) -> list[Piece]:
        """What a process that is gone had begun and is still to be done."""
        return [piece for piece in self._begun(pid) if self._is_open(piece)]

    def _begun(self, pid: int | None) -> list[Piece]:
        """What the job store says that a process is at: `busy:<item>` -> `<begun at> <worker> <task>`."""
        client = self._rig.redis
        jobs = [job.decode() for job in client.hkeys("ramify:{line}:under_way")]
        with client.pipeline(transaction=False) as pipe:
            for job_id in jobs:
                pipe.hgetall(f"ramify:{{{job_id}}}:work")
            rows = pipe.execute()
        found = []
        for job_id, marks in zip(jobs, rows, strict=True):
            for name, mark in marks.items():
                kind, _, item = name.decode().partition(":")
                if kind == "busy" and f":{pid}:" in mark.decode():
                    found.append(Piece(mark.decode().split(" ")[2], job_id, item if item[0].isdigit() else None))
        return found

    def _is_open(self, piece: Piece) -> bool:
        if piece.node is None or piece.task not in LEAF_TASKS:
            return True
        state = self._rig.redis.hget(f"ramify:{{{piece.job_id}}}:leaves", piece.node)
        return state is not None and state.decode() in LEAF_TASKS[piece.task]
