"""Exit codes: 0 done, 1 failed, 2 bad usage or input (from the errors), 3 partial, 130 interrupted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.models import BatchStatus, JobStatus

DONE = 0
FAILED = 1
PARTIAL = 3
INTERRUPTED = 130


def of_job(job: JobStatus) -> int:
    """A job that is still open counts as done: asking how far it is has worked."""
    if job.partial:
        return PARTIAL
    return FAILED if job.terminal and job.state != "done" else DONE


def of_batch(batch: BatchStatus) -> int:
    """Partial as soon as one job is, or did not end well, or a line was refused."""
    spoilt = sum(count for state, count in batch.by_state.items() if state not in {"done", "open"})
    return PARTIAL if spoilt or batch.partial or batch.rejected else DONE
