"""A job as its tasks see it: the header that every task reads first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache

from pydantic import Field

from shared.contract import PRIORITY_STEPS, priority
from shared.jobs.fields import Fields, stored
from shared.jobs.states import TERMINAL, State
from shared.models import JobRequest, Lane
from shared.models.base import Model

FIELDS = (
    "state", "request", "created_at", "updated_at", "deadline_s", "deadline_at", "batch_id", "aggregator", "rank",
    "retry_of", "open", "traceparent",
)  # fmt: skip


class Job(Model):
    """What a task needs to know of its job. Times are Unix seconds of Redis' clock.

    `aggregator`: None until the question is read. `rank`: priority of its messages. `retry_of`: the job whose recorded
    leaves it takes over. `open`: nodes that were not settled when it was read, -1 before it has any. `traceparent`: of
    the span that submitted it, if that is traced. `deadline_s`: all its seconds; `left_s`: those that were left when it
    was read, `read_at` on the monotonic clock. Both are the same while it waits for its turn, when there is no
    `deadline_at` yet.
    """

    id: str
    state: State
    request: JobRequest
    created_at: float
    updated_at: float
    deadline_s: float
    deadline_at: float | None = None
    batch_id: str | None = None
    aggregator: str | None = None
    rank: int = 0
    retry_of: str | None = None
    open: int = -1
    traceparent: str | None = None
    left_s: float
    read_at: float = Field(default_factory=time.monotonic)

    @property
    def lane(self) -> Lane:
        """Interactive or batch."""
        return self.request.lane

    @property
    def terminal(self) -> bool:
        """True when it has ended."""
        return self.state in TERMINAL

    def remaining(self, reserve: float = 0.0) -> float:
        """Seconds until the deadline, less `reserve`; never negative."""
        return max(0.0, self.left_s - reserve - (time.monotonic() - self.read_at))

    @property
    def wait_s(self) -> float:
        """Seconds for which it may still wait for a server that fails, where it waits at all; never negative.

        A quarter of its time, 45 s at most, is kept back beside `leaf_reserve`: enough to plan and search without that
        server, whose calls an open breaker refuses at once, or which are cut off after their share of what is left.
        """
        return self.remaining(self.leaf_reserve + min(45.0, 0.25 * self.deadline_s))

    @property
    def leaf_reserve(self) -> float:
        """Seconds kept back from the leaves for merge and summary: a fifth of the job's time, 15 at most."""
        return min(15.0, 0.2 * self.deadline_s)


def read_job(job_id: str, raw: Mapping[str, object], now: float) -> Job | None:
    """Build a job from its hash; None when there is none (never was, or has expired). `now` in Unix seconds.

    What has a default in its place is not read strictly. Raises: DamagedError.
    """
    fields = Fields(raw)
    if not fields:
        return None
    request = _request(fields.needed("request"))
    guessed, deadline_at = fields.guessed(), fields.number("deadline_at", 0.0)
    created_at = guessed.number("created_at", 0.0)
    deadline_s = fields.number("deadline_s", max(0.0, deadline_at - created_at) or None)
    return Job(
        id=job_id,
        state=fields.member("state", State),
        request=request,
        created_at=created_at,
        updated_at=guessed.number("updated_at", 0.0),
        deadline_s=deadline_s,
        deadline_at=deadline_at or None,
        batch_id=guessed.text("batch_id") or None,
        aggregator=guessed.text("aggregator") or None,
        rank=rank_of(guessed, request.lane),
        retry_of=guessed.text("retry_of") or None,
        open=int(guessed.number("open", -1.0)),
        traceparent=guessed.text("traceparent") or None,
        left_s=deadline_at - now if deadline_at else deadline_s,
    )


@lru_cache(maxsize=64)
def _request(raw: str) -> JobRequest:
    """Every task of a job reads the same one. Raises: DamagedError."""
    return stored(JobRequest, raw, "its request")


def rank_of(fields: Fields, lane: Lane) -> int:
    """The priority of a job's messages: the first of its lane where that is not known."""
    found = int(fields.number("rank", -1.0))
    return found if found in PRIORITY_STEPS else priority(lane)
