"""The rerank pool's tasks: one leaf against its own subquestion, the merged pool against the question."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from celery.signals import worker_shutdown

from shared.contract import TaskName
from shared.errors import DeadlineError
from shared.jobs import State
from shared.models import Hit, LeafResult, LeafStatus, MergedPool, SearchResult
from shared.providers.rerankers import reranker
from shared.providers.rerankers.base import Reranked
from shared.providers.rerankers.guarded import GuardedReranker
from shared.tasks.task_run import TaskRun
from workers.app import llm, record_failed_leaf, registry, shared_cache, start_body_outside_of_chord
from workers.merge.tree import apply_root_rerank, leaf_share
from workers.rerank.binding import bind_dependents
from workers.search.leaf import NOTHING, ask_of, kept, reranked_once, run_rerank_stages
from workers.search.stages.rescoring import spent
from workers.search.stages.truth import keep_truth
from workers.search.state import Tools

#: What reading an answer may take of the time that is left for leaves: those that waited need the rest.
BINDING_SHARE = 0.3


@cache
def _reranker() -> GuardedReranker:
    return reranker(registry.settings)


def _tools(timeout_s: float) -> Tools:
    return Tools(settings=registry.settings, reranker=_reranker(), cache=shared_cache(), timeout_s=timeout_s)


def _fail(run: TaskRun, reason: str) -> None:
    record_failed_leaf(run, reason)
    _bind_those_that_wait(run)
    start_body_outside_of_chord(run)


def _bind_those_that_wait(run: TaskRun) -> None:
    node = run.jobs.node(run.job.id, run.node_id)
    if node is not None and node.needed_by:
        bind_dependents(run, node, llm(), _tools(BINDING_SHARE * run.job.remaining(run.job.leaf_reserve)))


@registry(TaskName.RERANK_LEAF, on_error=_fail)
def rerank_leaf(run: TaskRun) -> None:
    """Run a leaf's strategy from the rerank on and record the leaf, then start those that waited for it.

    A leaf that failed in search, and one that is delivered again, is recorded already.
    """
    found = run.jobs.candidates(run.job.id, run.node_id)
    if found is not None:
        _rerank(run, found)
    _bind_those_that_wait(run)
    start_body_outside_of_chord(run)


def _rerank(run: TaskRun, found: SearchResult) -> None:
    job, jobs = run.job, run.jobs
    node = jobs.node(job.id, run.node_id)
    if node is None:
        return
    timeout = job.remaining(job.leaf_reserve)
    if timeout <= 0:
        raise DeadlineError("the job's time was up before this leaf was reranked")
    if found.mode != NOTHING.mode:
        ask = ask_of(job.request, node, registry.settings)
        found = run_rerank_stages(ask, found, _tools(timeout))
        jobs.annotate(job.id, found.cost, found.warnings)
    limits = registry.settings.multi_query
    result = LeafResult(
        node_id=node.id,
        status=LeafStatus.DONE,
        hits=keep_truth(found.hits, kept(node, limits, job.request.top_n or limits.max_total_results)),
        candidates=found.candidates,
        warnings=found.warnings,
        timings_ms=found.timings_ms,
        stages=found.stages,
        reranker=found.reranked_by,
        verdict=found.verdict,
    )
    jobs.record_leaf(job.id, result)


def _keep_merged_order(run: TaskRun, reason: str) -> None:
    """The root rerank failed: the merged order stands, and the answer says so."""
    pool = run.jobs.pool(run.job.id)
    run.jobs.annotate(run.job.id, warnings=[f"The merged results could not be reranked: {reason}"])
    run.jobs.start_summarising(run.job.id, pool or MergedPool())


@registry(TaskName.RERANK_ROOT, on_error=_keep_merged_order)
def rerank_root(run: TaskRun) -> None:
    """Order the merged pool against the original question."""
    pool = run.jobs.pool(run.job.id)
    if pool is None or run.job.state is not State.MERGING:
        return
    request, hits = run.job.request, [_as_hit(hit) for hit in pool.hits]
    ranked = rerank_pool(request.question, hits, request.tenant, _tools(run.job.remaining(1)))
    run.jobs.annotate(run.job.id, spent(ranked), ranked.warnings)
    ordered = apply_root_rerank(pool, ranked.hits, ranked.reranker, leaf_share=leaf_share(request))
    run.jobs.start_summarising(run.job.id, ordered)


def rerank_pool(question: str, hits: Sequence[Hit], tenant: str, tools: Tools) -> Reranked:
    """Best first; calls and tokens are 0 where another job had paid for them. Never raises for a failing reranker."""
    reranker = tools.reranker
    if reranker is None:
        return Reranked(hits=tuple(hits), reranker="none")

    def compute() -> Reranked:
        return reranker.rerank(question, hits, tools.timeout_s)

    parts = {
        "tenant": tenant,
        "question": question,
        "hits": [
            hit.model_dump(mode="json", include={"chunk_id", "title", "heading", "text", "score"}) for hit in hits
        ],
    }
    ranked, result = reranked_once(tools, parts, Reranked, compute)
    if result.warning:
        ranked = ranked.model_copy(update={"warnings": (*ranked.warnings, result.warning)})
    spent_nothing = {"calls": 0, "documents": 0, "tokens_in": 0, "tokens_out": 0}
    return ranked.model_copy(update=spent_nothing) if result.reused else ranked


def _as_hit(hit: Hit) -> Hit:
    return Hit(**{name: getattr(hit, name) for name in Hit.model_fields})


@worker_shutdown.connect
def _let_go(**_: object) -> None:
    """A worker that ends closes its connections to the rerank server."""
    if _reranker.cache_info().currsize:
        _reranker().close()
