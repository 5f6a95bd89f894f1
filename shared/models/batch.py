"""Batches line by line: what was read, what became of each line, and where a batch came from."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, model_validator

from shared.models.base import Model
from shared.models.cost import Cost
from shared.models.told import Sentence

#: A caller's own id of a line.
LineId = str | int | float


class LineKind(StrEnum):
    """What became of a line.

    A job of this batch, a job from before (its key names it), a job that an earlier line of this batch has named too,
    or nothing.
    """

    ENQUEUED = "enqueued"
    KNOWN = "known"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"


class LineRecord(Model):
    """What became of a line of a batch when it was entered: its number from 1, and the job that answers it.

    `id`, `meta`: what the caller wrote beside the question. `key`: its idempotency key. `reason`: why it was rejected;
    `text`: how it begins.
    """

    line: int = Field(ge=1)
    kind: LineKind
    job_id: str | None = None
    id: LineId | None = None
    meta: dict[str, Any] | None = None
    key: str | None = None
    reason: str | None = None
    text: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_older_release(cls, given: Any) -> Any:
        """Records that are stored yet may say `number` for `line`."""
        if isinstance(given, dict) and "number" in given:
            return {"line" if name == "number" else name: value for name, value in given.items()}
        return given


class BatchSource(Model):
    """What a client needs that goes on with a batch.

    The name of the file, what holds for each line that does not say otherwise, the client's own options, and where the
    answers go.
    """

    name: str = ""
    defaults: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    out: str | None = None


class BatchPosition(Model):
    """How far a batch was read: number of the last line, and the digest of all. `source` is where it was read from.

    `tenant`: the only one that its lines may be of; None: any.
    """

    read: int
    digest: str
    source: BatchSource
    tenant: str | None = None


class LineReport(Model):
    """What became of a line, and what it has cost.

    `state` is the job's, `gone` when it has expired from Redis, None without a job; `outcome` once it has ended.
    `waited_s`: for its turn; `ran_s`: from its turn on. `spent`, `cost_spent` and `cost_estimated` (least, most) are
    those of the line's own job: what answers a known or duplicate line is paid elsewhere. Money is in the unit of
    `prices`; None where a price is not known.
    """

    line: int
    kind: LineKind
    id: LineId | None = None
    meta: dict[str, Any] | None = None
    key: str | None = None
    job_id: str | None = None
    state: str | None = None
    outcome: str | None = None
    reasons: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    stale: int = Field(default=0, description="documents that its answer is stale by")
    question: str = ""
    leaves_done: int = 0
    leaves_failed: int = 0
    leaves_total: int = 0
    waited_s: float | None = None
    ran_s: float | None = None
    spent: Cost = Cost()
    cost_spent: float | None = None
    cost_estimated: tuple[float, float] | None = None
    error: Sentence | None = None
