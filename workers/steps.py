"""The workers' steps, and how a leaf's failure becomes data (A5)."""

from __future__ import annotations

from shared.models import LeafResult, LeafStatus
from shared.steps import Step, Steps
from workers.app import app

steps = Steps(app)


def record_failed_leaf(step: Step, reason: str) -> None:
    """`on_error` of leaf steps: the leaf reports its failure as its result, the body runs all the same."""
    failed = LeafResult(node_id=step.node_id, status=LeafStatus.FAILED, error=reason)
    step.jobs.record_leaf(step.job.id, failed)
