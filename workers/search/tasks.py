"""The search pool's tasks: a leaf's candidates for the rerank pool, `find` for a quick look, and the store's state."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from shared.contract import TaskName
from shared.errors import DeadlineError, InputError, RamifyError
from shared.models import SearchResult
from shared.models.find import MAX_ANCHORS, Anchor, Context, FindReply, FindRequest, RelatedReply, RelatedRequest
from shared.settings.strategies import named, split
from shared.tasks.task_run import TaskRun, remote
from workers.app import app, record_failed_leaf, registry, shared_cache
from workers.search.corpus import corpus
from workers.search.leaf import Ask, ask_of, run_search_stages, strategy_of
from workers.search.related import contexts
from workers.search.stages.truth import keep_truth

_FIND_S = 10.0


@registry(TaskName.SEARCH_LEAF, on_error=record_failed_leaf)
def search_leaf(run: TaskRun) -> None:
    """Search a leaf's subquestion and hand the candidates to the rerank pool."""
    job, jobs = run.job, run.jobs
    node = jobs.node(job.id, run.node_id)
    if node is None:
        return
    timeout = job.remaining(job.leaf_reserve)
    if timeout <= 0:
        raise DeadlineError("the job's time was up before this leaf was searched")
    ask = ask_of(job.request, node, registry.settings)
    found = run_search_stages(ask, corpus(), shared_cache(), timeout)
    jobs.annotate(job.id, found.cost, found.warnings)
    jobs.put_candidates(job.id, node.id, found)


@remote(app, TaskName.SEARCH_FIND, ignore_result=False)
def find(raw: dict[str, Any]) -> str:
    """One query without plan, LLM or job. Returns a FindReply as JSON; faults are told in it, never raised."""
    try:
        request = FindRequest.model_validate(raw)
        settings = registry.settings
        name = strategy_of(request, settings)
        split(named(settings.strategies, name))
        wanted = request.top_n * settings.search.candidate_multiplier
        ask = Ask(
            text=request.query, strategy=name, filters=request.filters, tenant=request.tenant, wanted=wanted,
            explain=request.explain, near_symbol=request.near_symbol, depth=request.depth,
        )  # fmt: skip
        found = run_search_stages(ask, corpus(), shared_cache(), _FIND_S)
        hits = tuple(hit.model_copy(update={"vector": ()}) for hit in keep_truth(found.hits, request.top_n))
        found, around = _with_contexts(found.model_copy(update={"hits": hits}), request)
        return FindReply(result=found, contexts=around).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return FindReply(error=str(error), bad_input=isinstance(error, InputError)).model_dump_json()


def _with_contexts(found: SearchResult, request: FindRequest) -> tuple[SearchResult, dict[str, Context]]:
    """The result and what stands around its hits. A store that fails there costs a warning, not the result."""
    names = set(Anchor.model_fields)
    anchors = [Anchor(**hit.model_dump(include=names)) for hit in found.hits[:MAX_ANCHORS]]
    if not anchors or not request.related:
        return found, {}
    try:
        excludes = registry.settings.search.excludes
        store = corpus().store(request.tenant)
        return found, contexts(anchors, request.filters, request.related, store, excludes)
    except RamifyError as error:
        warning = f"The related contexts could not be found: {error}"
        return found.model_copy(update={"warnings": (*found.warnings, warning)}), {}


@remote(app, TaskName.SEARCH_RELATED, ignore_result=False)
def related(raw: dict[str, Any]) -> str:
    """What stands around the hits of a job. Returns a RelatedReply as JSON; faults are told in it."""
    try:
        request = RelatedRequest.model_validate(raw)
        excludes = registry.settings.search.excludes
        store = corpus().store(request.tenant)
        found = contexts(request.anchors, request.filters, request.related, store, excludes)
        return RelatedReply(contexts=found).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return RelatedReply(error=str(error)).model_dump_json()


@remote(app, TaskName.SEARCH_INFO, ignore_result=False)
def info() -> dict[str, Any]:
    """What the store holds of all tenants and what it was built with, for `doctor`."""
    try:
        found, unseen = corpus().state()
    except RamifyError as error:
        return {"ok": False, "error": str(error)}
    return {"ok": True, "collection": found.model_dump(mode="json") if found else None, "without_tenant": unseen}
