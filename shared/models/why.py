"""Why a job or a batch is not done, or how it ended: the answer in words first, then what it was read from."""

from __future__ import annotations

from typing import Literal

from shared.models.base import Model
from shared.models.budget import Spending


class Turn(Model):
    """Where a job stands that waits for its turn.

    `ahead`: jobs of its tenant before it; `tenants`: how many share the lane now; `under_way` of at most `window` jobs
    of the lane are, `own` of them its tenant's. `eta_s`: about how many seconds until it is let in, None when nobody
    knows.
    """

    lane: str
    ahead: int
    tenants: int
    waiting: int
    under_way: int
    own: int
    window: int
    eta_s: float | None = None


class Piece(Model):
    """One piece of work that is not done. `item` is a node, or a step of the whole job; `what` its subquestion.

    `stands`: waits (for the leaves in `needs`), queued (behind at most `in_queue` messages; `serving` workers take from
    that queue), working (with `worker` for `since_s` seconds) or lost (`said` has the reason).
    """

    item: str
    task: str
    queue: str
    what: str = ""
    stands: Literal["waits", "queued", "working", "lost"]
    said: str
    needs: tuple[str, ...] = ()
    in_queue: int = 0
    serving: int = 0
    worker: str | None = None
    lives: bool | None = None
    since_s: float | None = None
    tries: int = 1


class Failure(Model):
    """A leaf that failed, and how."""

    item: str
    what: str = ""
    error: str


class Redriven(Model):
    """Work that was sent again: when (Unix seconds), which, and why."""

    at: float
    items: tuple[str, ...]
    why: str


class Death(Model):
    """A worker that died at a piece of work, which it began `at` (Unix seconds)."""

    item: str
    worker: str
    task: str
    at: float


class Why(Model):
    """One job. `said` answers the question, `next` is the command to go on with; the rest are the facts.

    `redrives` are the latest, `redriven` counts all. `dead_letters`: their ids. `providers`: those that are
    left alone now. `faults`: what could not be read. `deadline_left_s` is None when the job has ended.
    """

    job_id: str
    question: str
    state: str
    partial: bool = False
    lane: str
    tenant: str
    said: str
    next: str
    turn: Turn | None = None
    work: tuple[Piece, ...] = ()
    failed: tuple[Failure, ...] = ()
    redriven: int = 0
    redrives: tuple[Redriven, ...] = ()
    deaths: tuple[Death, ...] = ()
    dead_letters: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    last_error: str | None = None
    faults: tuple[str, ...] = ()
    deadline_left_s: float | None = None
    ended_at: float | None = None
    budget: Spending | None = None
    retry_of: str | None = None
    retried_as: str | None = None


class Slowest(Model):
    """The job of a batch that has been under way for longest."""

    job_id: str
    state: str
    for_s: float


class CommonError(Model):
    """The error that most jobs of a batch ended with: `count` of the last `looked_at` that failed or expired."""

    error: str
    count: int
    looked_at: int


class BatchWhy(Model):
    """One batch. `waiting`, `under_way` and `finished` sum to `total`; `eta_s`: about how many seconds it may take."""

    batch_id: str
    said: str
    next: str
    total: int
    waiting: int
    under_way: int
    finished: int
    partial: int = 0
    by_state: dict[str, int]
    eta_s: float | None = None
    slowest: Slowest | None = None
    error: CommonError | None = None
    providers: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    budget: Spending | None = None
    retry_of: str | None = None
    retried_as: str | None = None
