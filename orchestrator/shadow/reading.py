"""What shadow runs have shown so far, and forgetting it. Starts nothing."""

from __future__ import annotations

from orchestrator.evaluation.ab import report
from orchestrator.evaluation.ab_report import AbReport
from orchestrator.evaluation.labels import Labels
from orchestrator.shadow.runs import give_up
from shared.job_store import JobStore
from shared.job_store.ab import AbStore


def read_report(jobs: JobStore, labels: Labels | None = None) -> AbReport:
    """The report of everything that is kept. May raise redis.exceptions.RedisError."""
    ab = AbStore(jobs.client, jobs.settings)
    kept = list(ab.comparisons())
    found = report([one for one in kept if one is not None], ab.counts(), labels)
    lost = sum(one is None for one in kept)
    said = f"{lost} of {len(kept)} comparisons cannot be read (another release wrote them) and are left out."
    now = ab.announced()
    return found.model_copy(
        update={
            "strategy": now.get("strategy"),
            "share": float(now["share"]) if now.get("share") else None,
            "waiting": ab.waiting(),
            "open": len(ab.open_runs()),
            "warnings": (said,) if lost else (),
        }
    )


def reset(jobs: JobStore) -> int:
    """End open runs and forget all that was compared. Returns how many comparisons there were."""
    ab = AbStore(jobs.client, jobs.settings)
    count = sum(1 for _ in ab.comparisons())
    for run_id in ab.open_runs():
        give_up(jobs, run_id, "reset")
    ab.clear()
    return count
