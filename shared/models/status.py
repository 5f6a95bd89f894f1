"""How far a job or a batch is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.cost import Cost, Spending
from shared.models.ingest import IngestCounts
from shared.models.route import Route
from shared.models.stale import StaleMark
from shared.models.told import Command, Sentence, ServerPath


class Postponement(Model):
    """An item of a job's work that waits for a server: `until` then, where the server's gate lets calls go again.

    `goes_on_at`: when it is tried whatever the gate says, to be done without the server (both Unix seconds).
    `provider` is a kind of server, `why` how it failed, `waits` how often the item has waited.
    """

    until: float
    goes_on_at: float
    provider: str
    why: str = ""
    waits: int = 1


class JobStatus(Model):
    """A snapshot of a job's hash. Times are Unix seconds.

    `retry_of`: the ended job that this one tries again; `retried_as`: the job that tries this one again;
    `replay_of`: the answered job that this one goes on from, from a stage on. `degraded`:
    codes of `Degradation`, for what was made without something; `degraded_at`: the same by item of the job's work.
    `postponed`: items that wait for a server now, where the job was asked for alone.
    `ingest`: how far it is, of a job that puts documents in.
    It may wait for its turn until `waits_until` and has `deadline_s` seconds from its turn on: before that there is no
    `deadline_at`.
    """

    job_id: str
    state: str
    question: ServerPath
    lane: str
    tenant: str
    batch_id: str | None = None
    leaves_total: int = 0
    leaves_done: int = 0
    leaves_failed: int = 0
    partial: bool = False
    created_at: float
    updated_at: float
    finished_at: float | None = None
    waits_until: float | None = None
    deadline_s: float = 0.0
    deadline_at: float | None = None
    error: Sentence | None = None
    retry_of: str | None = None
    retried_as: str | None = None
    replay_of: str | None = None
    route: Route | None = None
    warnings: tuple[Sentence, ...] = ()
    degraded: tuple[str, ...] = ()
    degraded_at: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    verdicts: tuple[str, ...] = Field(default=(), description="codes of `AnswerVerdict`, of an answer that is there")
    stale: tuple[StaleMark, ...] = Field(default=(), description="documents that its answer is stale by")
    postponed: dict[str, Postponement] = Field(default_factory=dict)
    cost: Cost = Cost()
    budget: Spending | None = None
    ingest: IngestCounts | None = None
    timings_ms: dict[str, float] = Field(default_factory=dict)

    @property
    def terminal(self) -> bool:
        """True when nothing will change any more."""
        return self.state in {"done", "failed", "cancelled", "expired"}

    @property
    def ends_by(self) -> float:
        """When its time is over at the latest (Unix seconds)."""
        if self.deadline_at is not None:
            return self.deadline_at
        return (self.waits_until or self.created_at) + self.deadline_s


class BatchStatus(Model):
    """The accounts of a batch, true at every moment.

    Of `lines` read each is one of `enqueued` (a job of this batch), `known` (its key names an earlier job), `duplicate`
    (its key was seen in this batch), `rejected` and `blank`. Of the `enqueued` jobs each is one of `open`, `done`,
    `degraded` (complete, but something helpful was left out), `partial` (leaves are missing), `failed`, `expired` and
    `cancelled`. `known_open`: known jobs that have not ended. `reasons`: how many ended jobs of any outcome carry each.
    `source`: the file that it was read from; `closed_at`: when all of it had been read, None while that goes on or when
    it was cut off; `cancelled_at`: when it was cancelled before that, and took no more lines. `retried_as` is the
    newest of `retries`, `repairs` and `refreshes`: the batches that try again what has no complete answer, is degraded,
    or is stale, oldest first. `tenant`: whose it is; None when a client of all tenants has opened it. `postponed`:
    open jobs that wait for a server, `waits_for` that wait of them which ends first.
    """

    batch_id: str
    lines: int = 0
    enqueued: int = 0
    known: int = 0
    duplicate: int = 0
    rejected: int = 0
    blank: int = 0
    open: int = 0
    done: int = 0
    degraded: int = 0
    partial: int = 0
    failed: int = 0
    expired: int = 0
    cancelled: int = 0
    finished: int = 0
    known_open: int = 0
    postponed: int = 0
    waits_for: Postponement | None = None
    reasons: dict[str, int] = Field(default_factory=dict)
    verdicts: dict[str, int] = Field(default_factory=dict, description="how many of its answers carry each")
    source: ServerPath = ""
    created_at: float
    closed_at: float | None = None
    cancelled_at: float | None = None
    tenant: str | None = None
    budget: Spending | None = None
    retry_of: str | None = None
    retried_as: str | None = None
    retries: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    refreshes: tuple[str, ...] = ()

    @property
    def terminal(self) -> bool:
        """True when every job of the batch has ended, and every known job that it names."""
        return not (self.open or self.known_open)

    @property
    def read_whole(self) -> bool:
        """False while the file that it is made from is read, or when that was cut off."""
        return self.closed_at is not None or not (self.source or self.cancelled_at)

    @property
    def cancelled_early(self) -> bool:
        """True when it was cancelled before all its lines had been read: it takes no more."""
        return self.cancelled_at is not None and not self.read_whole

    def kinds(self) -> dict[str, int]:
        """The lines by what was made of them; kinds of which there are none are left out."""
        names = ("enqueued", "known", "duplicate", "rejected", "blank")
        return {name: count for name in names if (count := getattr(self, name))}

    def outcomes(self) -> dict[str, int]:
        """The jobs by outcome, open ones among them; those of which there are none are left out."""
        names = ("open", "done", "degraded", "partial", "failed", "expired", "cancelled")
        return {name: count for name in names if (count := getattr(self, name))}


class JobEvent(Model):
    """One entry of a job's event stream. `id` is Redis' own (milliseconds-sequence)."""

    id: str
    type: str
    data: dict[str, str] = Field(default_factory=dict)


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


class PendingWork(Model):
    """One piece of work that is not done. `item` is a node, or a step of the whole job; `what` its subquestion.

    `stands`: waits (for the leaves in `needs`), postponed (it waits for a server), queued (behind at most `in_queue`
    messages; `serving` workers take from that queue), working (with `worker` for `since_s` seconds) or lost (`said` has
    the reason).
    """

    item: str
    task: str
    queue: str
    what: str = ""
    stands: Literal["waits", "postponed", "queued", "working", "lost"]
    said: str
    postponed: Postponement | None = None
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
    error: Sentence


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
    left alone now. `settings`: where those of pools differ from this process's. `faults`: what could not be read.
    `wait_left_s`: seconds that a waiting job may still wait; `deadline_left_s`: of its deadline, None while it waits
    and when it has ended.
    """

    job_id: str
    question: ServerPath
    state: str
    partial: bool = False
    degraded: tuple[str, ...] = ()
    degraded_at: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    lane: str
    tenant: str
    said: Sentence
    next: Command
    turn: Turn | None = None
    work: tuple[PendingWork, ...] = ()
    failed: tuple[Failure, ...] = ()
    redriven: int = 0
    redrives: tuple[Redriven, ...] = ()
    deaths: tuple[Death, ...] = ()
    dead_letters: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    settings: str | None = None
    last_error: Sentence | None = None
    faults: tuple[str, ...] = ()
    wait_left_s: float | None = None
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

    error: Sentence
    count: int
    looked_at: int


class BatchWhy(Model):
    """One batch. `waiting`, `under_way` and `finished` sum to `enqueued`; `eta_s`: about how many seconds it may take.

    `outcomes` are the jobs by outcome, open ones among them; `reasons`: as in its status. `expiring`: about
    how many of the waiting ones will have waited for too long before their turn comes; `eta_s` is of the others.
    `postponed`: how many of those under way wait for a server. `retries`, `repairs`, `refreshes`: as in its status.
    """

    batch_id: str
    said: Sentence
    next: Command
    enqueued: int
    waiting: int
    under_way: int
    finished: int
    known_open: int = 0
    outcomes: dict[str, int]
    reasons: dict[str, int] = Field(default_factory=dict)
    expiring: int = 0
    eta_s: float | None = None
    postponed: int = 0
    slowest: Slowest | None = None
    error: CommonError | None = None
    providers: tuple[str, ...] = ()
    settings: str | None = None
    faults: tuple[str, ...] = ()
    budget: Spending | None = None
    retry_of: str | None = None
    retried_as: str | None = None
    retries: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    refreshes: tuple[str, ...] = ()


class DeadLetter(Model):
    """One piece of work that is not tried any more.

    `item` is the node, or the step of the whole job, of `job_id`; for a document its path, and `job_id` is the job that
    was to put it in.
    `what` is the subquestion or the document's identity. `proof`: who had it when it died, one line each: Unix
    seconds of the beginning, worker, task.
    """

    id: str
    kind: Literal["work", "document"]
    at: float
    tenant: str
    job_id: str
    item: ServerPath
    task: str
    what: ServerPath = ""
    reason: str
    proof: tuple[str, ...] = ()
    namespace: str = "default"
    has_content: bool = Field(default=False, description="the document itself is kept, for a replay")


class Quarantined(Model):
    """What stood in Redis and is not ours: where, why, its length and the first 4,096 bytes of it.

    `kept_as`: of a key that held a wrong type, the name that it has now; its length is in Redis' own measure.
    """

    at: float
    found_in: str
    reason: str
    length: int
    head: str
    kept_as: str = ""
