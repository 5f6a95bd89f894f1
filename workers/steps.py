"""What the tasks of a worker process share: their steps, the cache, and how a leaf's failure becomes data."""

from __future__ import annotations

from functools import cache

from shared.cache import Cache
from shared.models import LeafResult, LeafStatus
from shared.steps import Steps, TaskRun
from workers.app import app

steps = Steps(app)


@cache
def shared_cache() -> Cache:
    """One a process; switched off by `cache.enabled`."""
    return Cache(steps.jobs.client, steps.settings)


def record_failed_leaf(run: TaskRun, reason: str) -> None:
    """`on_error` of leaf steps: the leaf reports its failure as its result, the body runs all the same."""
    failed = LeafResult(node_id=run.node_id, status=LeafStatus.FAILED, error=reason)
    run.jobs.record_leaf(run.job.id, failed)
