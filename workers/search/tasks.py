"""The search pool's tasks: a leaf's candidates for the rerank pool, `find` for a quick look, and the store's state."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from shared.contract import TaskName, read_request
from shared.errors import InputError, RamifyError
from shared.models import ROOT_ID, Cost, Facet, Node, SearchResult
from shared.models.find import MAX_ANCHORS, Anchor, Context, FindReply, FindRequest, RelatedReply, RelatedRequest
from shared.models.replay import Replay, ReplayStage
from shared.providers.http_deadline import until
from shared.settings.strategies import named
from shared.tasks.task_run import TaskRun, remote
from workers.app import app, registry, shared_cache
from workers.leaf_outcome import leaf_failed
from workers.search.leaf import (
    NOTHING_INGESTED,
    LeafQuery,
    leaf_query,
    run_rerank_stages,
    run_search_stages,
    with_snippets,
)
from workers.search.related import contexts
from workers.search.resources import search_resources
from workers.search.state import Tools
from workers.shown_hits import kind_share, shown_hits

_FIND_TIMEOUT_S = 10.0


@registry(TaskName.SEARCH_LEAF, on_error=leaf_failed)
def search_leaf(run: TaskRun) -> None:
    """Search a leaf's subquestion and hand the candidates to the rerank pool."""
    timeout, node, replay = run.leaf_seconds("searched"), run.node(), run.job.request.replay
    if replay is not None and replay.start is ReplayStage.RERANK:
        found = _as_recorded(run, node, replay, timeout)
    else:
        leaf = leaf_query(run.job.request, node, run.settings)
        found = run_search_stages(leaf, search_resources(), shared_cache(), timeout, run.settings)
    run.put_candidates(found, found.cost, found.warnings)


def _as_recorded(run: TaskRun, node: Node, replay: Replay, timeout_s: float) -> SearchResult:
    """The candidates of the job that is replayed from its rerank on.

    Where they are not kept, or the leaf is bound to another query now, it is searched as it was then: the client has
    seen that the corpus is the same.
    """
    before = run.jobs.node(replay.of, node.id) if replay.of else None
    if before is not None and (before.query, before.variants) == (node.query, node.variants):
        found = run.jobs.candidates(replay.of, node.id)
        if found is not None:
            return found.model_copy(update={"cost": Cost()})
    leaf = leaf_query(run.job.request, node, registry.settings)
    if strategy := replay.strategies.get(node.id):
        leaf = leaf.model_copy(update={"strategy": strategy})
    return run_search_stages(leaf, search_resources(), shared_cache(), timeout_s)


@remote(app, TaskName.SEARCH_FIND, ignore_result=False)
def search_find(raw: dict[str, Any]) -> str:
    """One query without plan, LLM or job. Returns a FindReply as JSON, which holds the error instead of raising it."""
    try:
        request = read_request(FindRequest, raw)
        settings = registry.settings
        node = Node(id=f"{ROOT_ID}.0", parent_id=ROOT_ID, level=1, facet=Facet.ORIGINAL, query=request.query)
        most = max(request.top_n * settings.search.candidate_multiplier, settings.multi_query.candidates_per_query)
        leaf = leaf_query(request, node, settings, most)
        stages = named(settings.strategies, leaf.strategy)
        with until(time.monotonic() + _FIND_TIMEOUT_S):
            found = _whole_strategy(leaf)
        best = shown_hits(found.hits, request.top_n, kind_share(stages))
        hits = tuple(hit.model_copy(update={"vector": ()}) for hit in best)
        kept = with_snippets(leaf, found.model_copy(update={"hits": hits}), settings)
        found, shown = _with_contexts(kept, request)
        return FindReply(result=found, contexts=shown).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return FindReply(error=str(error), bad_input=isinstance(error, InputError)).model_dump_json()


def _whole_strategy(leaf: LeafQuery) -> SearchResult:
    """Every stage of a leaf's strategy in this process; a stage that cannot run here says so in a warning."""
    resources, cache = search_resources(), shared_cache()
    found = run_search_stages(leaf, resources, cache, _FIND_TIMEOUT_S)
    if found.mode == NOTHING_INGESTED.mode:
        return found
    tools = Tools(
        settings=registry.settings, reranker=resources.reranker(), llm=resources.llm(), cache=cache,
        timeout_s=_FIND_TIMEOUT_S,
    )  # fmt: skip
    after = run_rerank_stages(leaf, found, tools)
    return after.model_copy(update={"cost": found.cost + after.cost})


def _with_contexts(found: SearchResult, request: FindRequest) -> tuple[SearchResult, dict[str, Context]]:
    """The result and the contexts of its hits. A store that fails here costs a warning, not the result."""
    names = set(Anchor.model_fields)
    anchors = tuple(Anchor(**hit.model_dump(include=names)) for hit in found.hits[:MAX_ANCHORS])
    if not anchors or not request.related:
        return found, {}
    try:
        return found, _contexts(anchors, request)
    except RamifyError as error:
        warning = f"The related contexts could not be found: {error}"
        return found.model_copy(update={"warnings": (*found.warnings, warning)}), {}


def _contexts(anchors: Sequence[Anchor], request: FindRequest | RelatedRequest) -> dict[str, Context]:
    store = search_resources().store(request.tenant)
    return contexts(anchors, request.filters, request.related, store, registry.settings.search.excludes)


@remote(app, TaskName.SEARCH_RELATED, ignore_result=False)
def search_related(raw: dict[str, Any]) -> str:
    """The contexts of a job's hits. Returns a RelatedReply as JSON, which holds the error instead of raising it."""
    try:
        request = read_request(RelatedRequest, raw)
        return RelatedReply(contexts=_contexts(request.anchors, request)).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return RelatedReply(error=str(error)).model_dump_json()


@remote(app, TaskName.SEARCH_INFO, ignore_result=False)
def search_info() -> dict[str, Any]:
    """What the store holds of all tenants and what it was built with, for `doctor`."""
    try:
        state, orphans = search_resources().state()
    except RamifyError as error:
        return {"ok": False, "error": str(error)}
    return {"ok": True, "collection": state.model_dump(mode="json") if state else None, "without_tenant": orphans}
