"""The rerank pool's tasks: one leaf against its own subquestion (B6), the merged pool against the question (B7)."""

from __future__ import annotations

from functools import cache

from shared.contract import TaskName
from shared.errors import DeadlineError
from shared.models import Cost, Hit, LeafResult, LeafStatus, MergedPool
from shared.rerankers import reranker
from shared.rerankers.base import Reranked, Reranker
from shared.steps import Step
from workers.merge.tree import apply_root_rerank
from workers.steps import record_failed_leaf, steps


@cache
def _reranker() -> Reranker:
    return reranker(steps.settings)


@steps(TaskName.RERANK_LEAF, on_error=record_failed_leaf)
def rerank_leaf(step: Step) -> None:
    """Order a leaf's candidates and record the leaf. A leaf that failed in search is recorded already."""
    job, jobs = step.job, step.jobs
    found = jobs.candidates(job.id, step.node_id)
    node = jobs.node(job.id, step.node_id)
    if found is None or node is None:
        return
    timeout = job.remaining(job.leaf_reserve)
    if timeout <= 0:
        raise DeadlineError("the job's time was up before this leaf was reranked")
    ranked = _reranker().rerank(node.query, found.hits, timeout)
    warnings = (*found.warnings, *ranked.warnings)
    jobs.annotate(job.id, _cost(ranked), warnings)
    result = LeafResult(
        node_id=node.id,
        status=LeafStatus.DONE,
        hits=ranked.hits[: steps.settings.multi_query.top_n_per_leaf],
        candidates=found.candidates,
        warnings=warnings,
        timings_ms={**found.timings_ms, "rerank": step.elapsed_ms},
        reranker=ranked.reranker,
    )
    jobs.record_leaf(job.id, result)


def _keep_merged_order(step: Step, reason: str) -> None:
    """The root rerank failed: the merged order stands, and the answer says so."""
    pool = step.jobs.pool(step.job.id)
    step.jobs.annotate(step.job.id, warnings=[f"The merged results could not be reranked: {reason}"])
    step.jobs.start_summarising(step.job.id, pool or MergedPool())


@steps(TaskName.RERANK_ROOT, on_error=_keep_merged_order)
def rerank_root(step: Step) -> None:
    """Order the merged pool against the original question."""
    pool = step.jobs.pool(step.job.id)
    if pool is None:
        return
    ranked = _reranker().rerank(step.job.request.question, [_as_hit(hit) for hit in pool.hits], step.job.remaining(1))
    step.jobs.annotate(step.job.id, _cost(ranked), ranked.warnings)
    step.jobs.start_summarising(step.job.id, apply_root_rerank(pool, ranked.hits, ranked.reranker))


def _as_hit(hit: Hit) -> Hit:
    return Hit(**{name: getattr(hit, name) for name in Hit.model_fields})


def _cost(ranked: Reranked) -> Cost:
    return Cost(rerank_calls=ranked.calls, rerank_documents=ranked.documents)
