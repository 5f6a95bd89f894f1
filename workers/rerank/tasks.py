"""The rerank pool's tasks: one leaf against its own subquestion, the merged pool against the question."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from celery.signals import worker_shutdown

from shared.contract import TaskName
from shared.models import Hit, SearchResult
from shared.models.degraded import Degradation
from shared.providers.fallbacks import note_reason
from shared.providers.rerankers import reranker
from shared.providers.rerankers.base import Reranked
from shared.providers.rerankers.guarded import GuardedReranker
from shared.providers.time_shares import seconds_for
from shared.tasks.task_run import TaskRun
from workers.app import llm, registry, shared_cache
from workers.leaf_outcome import leaf_failed, record_found
from workers.merge.answer import WRITE_S
from workers.merge.tree import apply_root_rerank, leaf_share
from workers.rerank.binding import bind_dependents, dependents
from workers.search.cached import reranked_once
from workers.search.leaf import NOTHING_INGESTED, leaf_query, run_rerank_stages
from workers.search.stages.rescoring import spent
from workers.search.state import Tools


@cache
def _reranker() -> GuardedReranker:
    return reranker(registry.settings)


def _tools(run: TaskRun, timeout_s: float) -> Tools:
    return Tools(settings=run.settings, reranker=_reranker(), llm=llm(), cache=shared_cache(), timeout_s=timeout_s)


def _record_failure(run: TaskRun, reason: str) -> None:
    leaf_failed(run, reason)
    _start_what_waited(run)


def _start_what_waited(run: TaskRun) -> None:
    """Start the leaves that waited for this one."""
    if needed_by := dependents(run):
        bind_dependents(run, needed_by, _tools(run, run.job.remaining(run.job.leaf_reserve)))


@registry(TaskName.RERANK_LEAF, on_error=_record_failure)
def rerank_leaf(run: TaskRun) -> None:
    """Run a leaf's strategy from the rerank on and record the leaf, then start those that waited for it.

    A leaf without time left is recorded in its fused order: its candidates are not thrown away. One that failed in
    search, and one that is delivered again, is recorded already.
    """
    if run.node_state() == "searched":
        found = run.candidates()
        if found is None:  # it is searched again
            return
        _rerank_and_record(run, found)
    _start_what_waited(run)


def _rerank_and_record(run: TaskRun, found: SearchResult) -> None:
    job, node = run.job, run.node()
    if found.mode != NOTHING_INGESTED.mode:
        tools = _tools(run, job.remaining(job.leaf_reserve))
        found = run_rerank_stages(leaf_query(job.request, node, run.settings), found, tools)
        record_found(run, node, found, found.cost, found.warnings, last=not node.needed_by)
    else:
        record_found(run, node, found, last=not node.needed_by)


def _keep_merged_order(run: TaskRun, reason: str) -> None:
    """The root rerank failed: the merged order stands, and the answer says so. Without a pool it is merged again."""
    if (pool := run.jobs.pool(run.job.id)) is not None:
        note_reason(Degradation.RERANK_UNAVAILABLE)
        run.start_summarising(pool, warnings=[f"The merged results could not be reranked: {reason}"])


@registry(TaskName.RERANK_ROOT, on_error=_keep_merged_order)
def rerank_root(run: TaskRun) -> None:
    """Order the merged pool against the original question, once. A pool that is lost is merged again by the reaper."""
    pool = run.jobs.pool(run.job.id) if run.claimed else None
    if pool is None:
        return
    request = run.job.request
    hits = [Hit.of_valid({name: getattr(hit, name) for name in Hit.model_fields}) for hit in pool.hits]
    ranked = rerank_pool(request.question, hits, request.tenant, _tools(run, run.job.remaining(WRITE_S)))
    ordered = apply_root_rerank(pool, ranked.hits, ranked.reranker, leaf_share=leaf_share(request))
    run.start_summarising(ordered, spent(ranked), ranked.warnings)


def rerank_pool(question: str, hits: Sequence[Hit], tenant: str, tools: Tools) -> Reranked:
    """Best first; calls and tokens are 0 where another job had paid for them. Never raises for a failing reranker."""
    if tools.reranker is None:
        return Reranked(hits=tuple(hits), reranker="none")
    return reranked_once(tools, tenant, question, hits, seconds_for("root rerank", tools.left_s))


@worker_shutdown.connect
def _close_reranker(**_: object) -> None:
    """A worker that ends closes its connections to the rerank server."""
    if _reranker.cache_info().currsize:
        _reranker().close()
