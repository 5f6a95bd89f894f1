"""Dead letters: work that was retired because it killed its workers, with the evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shared.models.base import Model


class DeadLetter(Model):
    """One piece of work that is not tried any more.

    `item` is the node, or the step of the whole job, of `job_id`; for a document its path, and `job_id` is the ingest.
    `what` is the subquestion or the document's identity. `proof`: who had it when it died, one line each: Unix
    seconds of the beginning, worker, task.
    """

    id: str
    kind: Literal["work", "document"]
    at: float
    tenant: str
    job_id: str
    item: str
    task: str
    what: str = ""
    reason: str
    proof: tuple[str, ...] = ()
    namespace: str = "default"
    has_content: bool = Field(default=False, description="the document itself is kept, for a replay")
