"""A job as its tasks see it: the header that every step reads first."""

from __future__ import annotations

import time
from collections.abc import Mapping

from shared.job_store.states import TERMINAL, State
from shared.models import JobRequest, Lane
from shared.models.base import Model


class Job(Model):
    """What a step needs to know of its job. Times are Unix seconds. `aggregator`: None until the question is read."""

    id: str
    state: State
    request: JobRequest
    created_at: float
    updated_at: float
    deadline_at: float
    batch_id: str | None = None
    aggregator: str | None = None

    @property
    def lane(self) -> Lane:
        """Interactive or batch."""
        return self.request.lane

    @property
    def terminal(self) -> bool:
        """True when nothing will change any more."""
        return self.state in TERMINAL

    def remaining(self, reserve: float = 0.0) -> float:
        """Seconds until the deadline, less `reserve`; never negative."""
        return max(0.0, self.deadline_at - reserve - time.time())

    @property
    def leaf_reserve(self) -> float:
        """Seconds that leaves leave over for merge and summary: a fifth of the job's time, 15 at most (G1)."""
        return min(15.0, 0.2 * (self.deadline_at - self.created_at))


FIELDS = ("state", "request", "created_at", "updated_at", "deadline_at", "batch_id", "aggregator")


def read_job(job_id: str, fields: Mapping[str, str | None]) -> Job | None:
    """Build a job from its hash; None when there is none (never was, or has expired)."""
    if not fields.get("state"):
        return None
    return Job(
        id=job_id,
        state=State(str(fields["state"])),
        request=JobRequest.model_validate_json(str(fields["request"])),
        created_at=float(fields["created_at"] or 0),
        updated_at=float(fields["updated_at"] or 0),
        deadline_at=float(fields["deadline_at"] or 0),
        batch_id=fields.get("batch_id") or None,
        aggregator=fields.get("aggregator") or None,
    )
