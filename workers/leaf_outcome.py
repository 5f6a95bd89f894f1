"""Records what became of a leaf. One that has found something is never thrown away: it stands as it was found."""

from __future__ import annotations

from collections.abc import Iterable

from redis.exceptions import ResponseError

from shared.contract import TaskName
from shared.models import Cost, JobRequest, LeafResult, LeafStatus, Node, SearchResult
from shared.models.degraded import Degradation
from shared.providers.fallbacks import note_reason
from shared.settings import Settings
from shared.store.base import DENSE, SPARSE, TRIGRAM
from shared.tasks.task_run import TaskRun
from workers.search.leaf import as_searched, leaf_query, leaf_result_limit, with_snippets
from workers.shown_hits import leaf_kind_share, shown_hits

_ARMS = (SPARSE, DENSE, TRIGRAM)
#: What a leaf goes without whose last task fails.
_WITHOUT = {
    TaskName.RERANK_LEAF.value: Degradation.RERANK_UNAVAILABLE,
    TaskName.RERANK_COLUMNS.value: Degradation.LLM_UNAVAILABLE,
}


def record_found(  # noqa: PLR0913 - as `TaskRun.record_leaf`
    run: TaskRun,
    node: Node,
    found: SearchResult,
    cost: Cost | None = None,
    warnings: Iterable[str] = (),
    *,
    last: bool = False,
) -> None:
    """Record a leaf with what it has found, best first."""
    run.record_leaf(leaf_result(run.job.request, node, found, run.settings), cost, warnings, last=last)


def leaf_result(
    request: JobRequest, node: Node, found: SearchResult, settings: Settings, shown: int | None = None
) -> LeafResult:
    """What a leaf keeps of what it has found. `shown`: results of the answer; None: as the request says. Pure."""
    limits = settings.multi_query
    limit = leaf_result_limit(node, limits, shown or request.top_n or limits.max_total_results)
    best = shown_hits(found.hits, limit, leaf_kind_share(request, node, settings))
    kept = with_snippets(leaf_query(request, node, settings), found.model_copy(update={"hits": best}), settings)
    return LeafResult(
        node_id=node.id,
        status=LeafStatus.DONE,
        hits=kept.hits,
        candidates=found.candidates,
        warnings=found.warnings,
        stages=kept.stages,
        mode=found.mode,
        index_version=found.index_version,
        reranker=found.reranked_by,
        verdict=found.verdict,
        floor=floor_of(found, limits.candidates_per_query),
    )


def floor_of(found: SearchResult, most: int) -> dict[str, float]:
    """Of each arm the lowest score among the candidates; none where there were fewer than `most`."""
    if len(found.hits) < most:
        return {}
    scores = [(arm, hit.parts[arm]) for hit in found.hits for arm in _ARMS if arm in hit.parts]
    return {arm: min(score for name, score in scores if name == arm) for arm in dict.fromkeys(arm for arm, _ in scores)}


def leaf_failed(run: TaskRun, reason: str) -> None:
    """`on_error` of the tasks of a leaf: it is recorded all the same, so that the body runs.

    As it was found, where its search was done; else its failure is its result.
    """
    if not _recorded_as_found(run, run.node_id, _WITHOUT.get(run.task.name, Degradation.OUT_OF_TIME), reason):
        failed = LeafResult(node_id=run.node_id, status=LeafStatus.FAILED, error=reason, out_of_time=run.out_of_time)
        run.record_leaf(failed)


def record_searched(run: TaskRun) -> None:
    """Record the leaves that have been searched and wait for their last task, whose time is up."""
    for node_id, state in run.jobs.leaf_states(run.job.id).items():
        if state == "searched":
            _recorded_as_found(run, node_id, Degradation.OUT_OF_TIME, "the job's time was up")


def _recorded_as_found(run: TaskRun, node_id: str, without: Degradation, reason: str) -> bool:
    """As its search left it, with a warning: hits in fused order; a shard's rows are stored already. False: nothing."""
    try:
        node, found = run.jobs.node(run.job.id, node_id), run.jobs.candidates(run.job.id, node_id)
    except (ValueError, TypeError, ResponseError):  # damaged: what nobody can read was not found
        return False
    if node is None or found is None:
        return False
    found = as_searched(leaf_query(run.job.request, node, run.settings), found)
    warning = f"Leaf {node_id} stands as its search left it: {reason}"
    note_reason(without)
    run.annotate(warnings=[warning], item=node_id)
    record_found(run, node, found.model_copy(update={"warnings": (*found.warnings, warning)}))
    return True
