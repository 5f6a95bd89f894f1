"""What is known of a running task beyond its own code: its span, and the ids in its log lines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from shared.contract import TaskMessage, TaskName
from shared.jobs import Job
from shared.logs import about
from shared.tracing.protocols import TraceSpan
from shared.tracing.spans import contents, of_job, parent_of, span


@contextmanager
def in_task(job: Job, message: TaskMessage, task: str) -> Iterator[TraceSpan]:
    """For the block that is a task of a job. Its span goes on from that of whoever sent the message."""
    parent = parent_of(job.id, message.traceparent, job.traceparent)
    with (
        about(job=job.id, node=message.node_id or "", task=task),
        span(task, "consumer", parent=parent, job_id=job.id, attributes=_told(job, message)) as traced,
    ):
        if task == TaskName.PLAN_JOB.value:
            traced.set(ramify__waited_s=round(max(0.0, time.time() - job.created_at), 3))
            traced.set(**contents(question=job.request.question))
        yield traced


def _told(job: Job, message: TaskMessage) -> dict[str, str | int | float | bool]:
    return of_job(job.id, node_id=message.node_id, tenant=job.request.tenant, lane=job.lane.value)


def tell(traced: TraceSpan, said: Mapping[str, str]) -> None:
    """Put into the span how the task ended, by what it returns."""
    if degraded := said.get("degraded"):
        traced.set(ramify__degraded=degraded)
    if postponed := said.get("postponed"):
        traced.set(ramify__postponed=True)
        traced.fail("postponed", postponed)
    elif failed := said.get("failed"):
        traced.fail("failed", failed)
