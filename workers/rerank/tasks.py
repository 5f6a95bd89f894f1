"""The rerank pool's tasks: one leaf against its own subquestion (B6), the merged pool against the question (B7)."""

from __future__ import annotations

from functools import cache

from celery.signals import worker_shutdown

from shared.contract import TaskName
from shared.errors import DeadlineError
from shared.llm.client import ChatClient
from shared.models import Hit, LeafResult, LeafStatus, MergedPool, SearchResult
from shared.rerankers import reranker
from shared.rerankers.guarded import Guarded
from shared.signatures import body
from shared.steps import Step
from workers.cache import shared_cache
from workers.enumerate.leaf import structure_shard
from workers.merge.tree import apply_root_rerank, of_one_leaf
from workers.rerank.dependents import bind_dependents
from workers.rerank.root import leaf_share, rerank_pool
from workers.search.leaf import NOTHING, ask_of, kept, rerank_half
from workers.search.stages.rerank import spent
from workers.search.stages.truth import keep_truth
from workers.search.tools import Tools
from workers.steps import record_failed_leaf, steps

#: What reading an answer may take of the time that is left for leaves: those that waited need the rest.
BINDING_SHARE = 0.3


@cache
def _llm() -> ChatClient | None:
    return ChatClient(steps.settings) if steps.settings.has_llm else None


@cache
def _reranker() -> Guarded:
    return reranker(steps.settings)


def _tools(timeout_s: float) -> Tools:
    return Tools(settings=steps.settings, reranker=_reranker(), cache=shared_cache(), timeout_s=timeout_s)


def _fail(step: Step, reason: str) -> None:
    record_failed_leaf(step, reason)
    _bind_those_that_wait(step)
    _go_on_outside_of_a_chord(step)


def _bind_those_that_wait(step: Step) -> None:
    node = step.jobs.node(step.job.id, step.node_id)
    if node is not None and node.needed_by:
        bind_dependents(step, node, _llm(), _tools(BINDING_SHARE * step.job.remaining(step.job.leaf_reserve)))


@steps(TaskName.RERANK_LEAF, on_error=_fail)
def rerank_leaf(step: Step) -> None:
    """Run a leaf's strategy from the rerank on and record the leaf, then start those that waited for it (G13).

    A leaf that failed in search, and one that is delivered again, is recorded already.
    """
    found = step.jobs.candidates(step.job.id, step.node_id)
    if found is not None:
        _rerank(step, found)
    _bind_those_that_wait(step)
    _go_on_outside_of_a_chord(step)


def _go_on_outside_of_a_chord(step: Step) -> None:
    """A leaf that the reaper sent again is counted by no chord: the last one sends the body, once by its claim."""
    if not step.task.request.chord and step.jobs.all_settled(step.job.id):
        body(step.task.app, step.job.id, step.job.rank).apply_async()


def _rerank(step: Step, found: SearchResult) -> None:
    job, jobs = step.job, step.jobs
    node = jobs.node(job.id, step.node_id)
    if node is None:
        return
    timeout = job.remaining(job.leaf_reserve)
    if node.shard is not None:  # what was read counts, however late it is
        structure_shard(step, node, found, _llm(), timeout)
        return
    if timeout <= 0:
        raise DeadlineError("the job's time was up before this leaf was reranked")
    if found.mode != NOTHING.mode:
        ask = ask_of(job.request, node, steps.settings)
        found = rerank_half(ask, found, _tools(timeout))
        jobs.annotate(job.id, found.cost, found.warnings)
    limits = steps.settings.multi_query
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
    ordered = apply_root_rerank(pool, ranked.hits, ranked.reranker, leaf_share=leaf_share(request))
    step.jobs.start_summarising(step.job.id, ordered)


def _as_hit(hit: Hit) -> Hit:
    return Hit(**{name: getattr(hit, name) for name in Hit.model_fields})


@worker_shutdown.connect
def _let_go(**_: object) -> None:
    """A worker that ends closes its connections to the rerank server and the LLM."""
    if _reranker.cache_info().currsize:
        _reranker().close()
    if _llm.cache_info().currsize and (llm := _llm()) is not None:
        llm.close()
