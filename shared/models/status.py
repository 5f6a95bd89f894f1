"""How far a job or a batch is."""

from __future__ import annotations

from pydantic import Field

from shared.models.base import Model
from shared.models.budget import Spending
from shared.models.cost import Cost
from shared.models.route import Route


class JobStatus(Model):
    """A snapshot of a job's hash. Times are Unix seconds.

    `retry_of`: the ended job that this one tries again; `retried_as`: the job that tries this one again.
    """

    job_id: str
    state: str
    question: str
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
    deadline_at: float
    error: str | None = None
    retry_of: str | None = None
    retried_as: str | None = None
    route: Route | None = None
    warnings: tuple[str, ...] = ()
    cost: Cost = Cost()
    budget: Spending | None = None
    timings_ms: dict[str, float] = Field(default_factory=dict)

    @property
    def terminal(self) -> bool:
        """True when nothing will change any more."""
        return self.state in {"done", "failed", "cancelled", "expired"}


class BatchStatus(Model):
    """Counts of a batch: `by_state` sums to `total`. `rejected` lines were never enqueued. Retries as for jobs."""

    batch_id: str
    total: int
    finished: int
    partial: int = 0
    rejected: int = 0
    by_state: dict[str, int] = Field(default_factory=dict)
    created_at: float
    budget: Spending | None = None
    retry_of: str | None = None
    retried_as: str | None = None

    @property
    def terminal(self) -> bool:
        """True when every job of the batch has ended."""
        return self.finished >= self.total


class Event(Model):
    """One entry of a job's event stream. `id` is Redis' own (milliseconds-sequence)."""

    id: str
    type: str
    data: dict[str, str] = Field(default_factory=dict)
