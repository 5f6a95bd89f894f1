"""Puts the answer together: tree, leaves, merged results, summary, costs and times."""

from __future__ import annotations

from shared.job_store import Job, JobReader, JobStore, State
from shared.models import Answer, LeafResult, LeafStatus, MergedPool
from workers.merge.aggregators import Aggregated


def build_answer(jobs: JobStore, job: Job, pool: MergedPool, made: Aggregated, leaves: list[LeafResult]) -> Answer:
    """The answer of a job that is about to be done. Vectors are left out: nobody reads them."""
    status = JobReader(jobs.client).status(job.id)
    done = sum(leaf.status is LeafStatus.DONE for leaf in leaves)
    warnings = dict.fromkeys((*status.warnings, *pool.warnings))
    return Answer(
        job_id=job.id,
        question=job.request.question,
        state=State.DONE.value,
        partial=done < len(leaves) or (made.table is not None and made.table.partial),
        coverage=f"{done} of {len(leaves)} leaves answered",
        summary=made.summary,
        steps=made.steps,
        table=made.table,
        results=tuple(hit.model_copy(update={"vector": ()}) for hit in pool.hits),
        tree=tuple(jobs.nodes(job.id).values()),
        leaves=tuple(_without_vectors(leaf) for leaf in leaves),
        reranked_by=pool.reranked_by,
        route=status.route,
        warnings=tuple(warnings),
        cost=status.cost,
        budget=status.budget,
        timings_ms=_timings(status.timings_ms, jobs.clock.now() - job.created_at),
    )


def _without_vectors(leaf: LeafResult) -> LeafResult:
    return leaf.model_copy(update={"hits": tuple(hit.model_copy(update={"vector": ()}) for hit in leaf.hits)})


def _timings(stages: dict[str, float], seconds: float) -> dict[str, float]:
    """The job is still summarising: that stage ends now, `seconds` after the job was submitted."""
    total = round(max(0.0, seconds) * 1000, 1)
    before = sum(value for name, value in stages.items() if name != "total")
    return {**stages, "summarising": round(max(0.0, total - before), 1), "total": total}
