"""The rerank pool's tasks: one leaf against its own subquestion (B6), the merged pool against the question (B7)."""

from __future__ import annotations

from functools import cache

from celery.signals import worker_shutdown

from shared.contract import TaskName
from shared.errors import DeadlineError
from shared.models import Facet, Hit, LeafResult, LeafStatus, MergedPool, Node
from shared.rerankers import reranker
from shared.rerankers.guarded import Guarded
from shared.steps import Step
from workers.cache import shared_cache
from workers.merge.tree import apply_root_rerank, of_one_leaf
from workers.rerank.root import rerank_pool
from workers.search.leaf import NOTHING, ask_of, rerank_half
from workers.search.stages.rerank import spent
from workers.search.tools import Tools
from workers.steps import record_failed_leaf, steps


@cache
def _reranker() -> Guarded:
    return reranker(steps.settings)


def _kept(step: Step, node: Node) -> int:
    """Results that a leaf keeps (B6). The question's own leaf keeps all that the answer may show: others overlap."""
    limits = steps.settings.multi_query
    if node.facet is not Facet.ORIGINAL:
        return limits.top_n_per_leaf
    return max(limits.top_n_per_leaf, step.job.request.top_n or limits.max_total_results)


def _tools(timeout_s: float) -> Tools:
    return Tools(settings=steps.settings, reranker=_reranker(), cache=shared_cache(), timeout_s=timeout_s)


@steps(TaskName.RERANK_LEAF, on_error=record_failed_leaf)
def rerank_leaf(step: Step) -> None:
    """Run a leaf's strategy from the rerank on and record the leaf. One that failed in search is recorded already."""
    job, jobs = step.job, step.jobs
    found = jobs.candidates(job.id, step.node_id)
    node = jobs.node(job.id, step.node_id)
    if found is None or node is None:
        return
    timeout = job.remaining(job.leaf_reserve)
    if timeout <= 0:
        raise DeadlineError("the job's time was up before this leaf was reranked")
    if found.mode != NOTHING.mode:
        ask = ask_of(job.request, node.query, steps.settings)
        found = rerank_half(ask, found, _tools(timeout))
        jobs.annotate(job.id, found.cost, found.warnings)
    result = LeafResult(
        node_id=node.id,
        status=LeafStatus.DONE,
        hits=found.hits[: _kept(step, node)],
        candidates=found.candidates,
        warnings=found.warnings,
        timings_ms=found.timings_ms,
        stages=found.stages,
        reranker=found.reranked_by,
        verdict=found.verdict,
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
    if of_one_leaf(pool):
        step.jobs.start_summarising(step.job.id, pool)
        return
    request, hits = step.job.request, [_as_hit(hit) for hit in pool.hits]
    ranked = rerank_pool(request.question, hits, request.tenant, _tools(step.job.remaining(1)))
    step.jobs.annotate(step.job.id, spent(ranked), ranked.warnings)
    step.jobs.start_summarising(step.job.id, apply_root_rerank(pool, ranked.hits, ranked.reranker))


def _as_hit(hit: Hit) -> Hit:
    return Hit(**{name: getattr(hit, name) for name in Hit.model_fields})


@worker_shutdown.connect
def _let_go(**_: object) -> None:
    """A worker that ends closes its connections to the rerank server."""
    if _reranker.cache_info().currsize:
        _reranker().close()
