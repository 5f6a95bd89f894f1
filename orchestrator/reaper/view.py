"""What the reaper sees: a job as the store has it, and the world around it. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.contract import Queue, TaskName
from shared.job_store import State
from shared.job_store.work import Item
from shared.models import Lane

#: States of a leaf that has its result.


@dataclass(frozen=True)
class View:
    """One job. Times are Unix seconds. `needs`: of each leaf that waits, the leaves that it waits for.

    `counted`: it is among those under way. `sender_died`: when the step began that sends nodes to their first queue,
    and whose worker this look has found dead.
    """

    job_id: str
    state: State
    rank: int
    updated_at: float
    deadline_at: float
    lane: Lane = Lane.INTERACTIVE
    tenant: str = ""
    in_line: bool = False
    counted: bool = True
    has_pool: bool = False
    leaves: Mapping[str, str] = field(default_factory=dict)
    items: Mapping[str, Item] = field(default_factory=dict)
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sender_died: float | None = None

    def item(self, name: str) -> Item:
        """The marks of an item; none if it has none."""
        return self.items.get(name, Item())


@dataclass(frozen=True)
class World:
    """What holds for all jobs of one look. `waiting`: messages in each queue; `front`: see `Work.front`."""

    now: float
    living: frozenset[str] = frozenset()
    waiting: Mapping[Queue, int] = field(default_factory=dict)
    front: Mapping[str, float] = field(default_factory=dict)
    max_deaths: int = 3


@dataclass(frozen=True)
class Missing:
    """Work that is to be sent again. `seen`: the state of its node as it was looked at; "" for a step of the job."""

    item: str
    task: TaskName
    seen: str = ""
    sent_raw: str = ""
    why: str = ""
    suspect: bool = False


@dataclass(frozen=True)
class Settle:
    """The job has ended: what is left to count is counted."""


@dataclass(frozen=True)
class Expire:
    """The deadline has passed, and there is nothing to answer with."""

    reason: str


@dataclass(frozen=True)
class Force:
    """The deadline has passed: the leaves that are there make the answer."""

    body: Missing


@dataclass(frozen=True)
class Redrive:
    """These are lost."""

    missing: tuple[Missing, ...]


@dataclass(frozen=True)
class Rejoin:
    """The job is on none of the lists where it belongs. `runs`: it is under way, else it waits."""

    runs: bool


@dataclass(frozen=True)
class Wait:
    """All is as it should be."""


Decision = Settle | Expire | Force | Redrive | Rejoin | Wait
