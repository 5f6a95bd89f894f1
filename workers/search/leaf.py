"""One question through a strategy, with what was found before reused. Knows no task and no job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from pydantic import TypeAdapter

from shared.cache import LEAF, Cache, CacheResult, CacheStatus
from shared.models import Cost, Facet, Filters, JobRequest, Node, SearchResult
from shared.models.base import Model
from shared.models.find import FindRequest
from shared.providers.http_deadline import until
from shared.providers.metering import refusals
from shared.providers.rerankers.base import Reranked
from shared.settings import Settings
from shared.settings.sections import MultiQuerySettings
from shared.settings.stages import EdgesStage
from shared.settings.strategies import FOLLOWS_EDGES, Strategy, asked_strategy, split
from shared.store.base import CollectionInfo
from workers.search.corpus import Corpus
from workers.search.engine import EMPTY, go_on, search
from workers.search.state import Query, Tools
from workers.search.variants import VARIANT, go_on_variants, search_variants

#: What is found while nothing is ingested.
NOTHING = SearchResult(mode="none", warnings=(EMPTY,))
_STRATEGY = TypeAdapter(Strategy)
R = TypeVar("R", SearchResult, Reranked)


class Ask(Model):
    """What decides a leaf's outcome besides the corpus. `wanted` is the number of results.

    `variants` are wordings that the leaf is searched in instead of its text alone; none for most leaves.
    `facet` is the storage facet that answers it.
    """

    text: str
    strategy: str
    filters: Filters
    tenant: str
    wanted: int
    explain: bool = False
    variants: tuple[str, ...] = ()
    near_symbol: str | None = None
    depth: int | None = None
    facet: str = ""


def strategy_of(request: JobRequest | FindRequest, settings: Settings) -> str:
    """The strategy of a request: the one it names, a mode's, two_pass where it wants edges followed, or the default."""
    return asked_strategy(request) or settings.search.strategy


def ask_of(request: JobRequest, node: Node, settings: Settings) -> Ask:
    """A leaf of a job. The request's own strategy goes before the one of the question's type."""
    return Ask(
        text=node.query,
        strategy=asked_strategy(request) or node.strategy or settings.search.strategy,
        filters=_narrowed(request.filters, node),
        tenant=request.tenant,
        wanted=settings.multi_query.candidates_per_query,
        explain=request.explain,
        variants=node.variants,
        near_symbol=request.near_symbol,
        depth=request.depth,
        facet=node.facet.stored,
    )


def _narrowed(filters: Filters, node: Node) -> Filters:
    """The request's filter, and of the node's kinds those that it allows: never more than the request may see."""
    kinds = tuple(kind for kind in node.kinds if not filters.kinds or kind in filters.kinds)
    return filters.model_copy(update={"kinds": kinds}) if kinds else filters


def kept(node: Node, limits: MultiQuerySettings, shown: int) -> int:
    """Results that a leaf keeps. The question's own leaf keeps all that an answer shows: others overlap with it.

    A leaf that waited for others keeps twice as many as they do: it speaks for several names, and the evidence that
    only it can find stands low in them (musique, names for answers: All@10 64.7 against 59.6; answers: 81.8, 79.5).
    """
    if node.facet is Facet.ORIGINAL:
        return max(limits.top_n_per_leaf, shown)
    return limits.top_n_per_leaf * (2 if node.depends_on else 1)


def run_search_stages(ask: Ask, corpus: Corpus, cache: Cache | None, timeout_s: float) -> SearchResult:
    """What the search pool does of a leaf. Raises: InputError for an unknown strategy, the store's errors.

    Every call that it makes of a server ends within `timeout_s`, tries and waits too.
    """
    with until(time.monotonic() + timeout_s):
        first, _ = split(corpus.settings.stages_of(ask.strategy))
        ready = corpus.tools(ask.tenant)
        if ready is None:
            return NOTHING
        info, tools = ready
        kit = replace(tools, timeout_s=timeout_s, index_version=info.index_version)
        run = search_variants if ask.variants else search
        compute = partial(run, _query(ask), ask.strategy, first, kit, explain=ask.explain)
        if cache is None or not corpus.settings.cache.leaves:
            return _told(compute(), ask, first)
        refused = refusals()
        found, result = cache.get_or_compute(
            LEAF,
            _depends_on(ask, first, info, corpus.settings),
            SearchResult,
            compute,
            wait_s=min(corpus.settings.cache.wait_s, timeout_s),
            keep=lambda _: refusals() == refused,  # another job may have the money for a better one
        )
        return _reused(_told(found, ask, first), result)


def _depends_on(ask: Ask, stages: Strategy, info: CollectionInfo, settings: Settings) -> dict[str, object]:
    """Everything that decides what the search stages find."""
    return {
        **ask.model_dump(mode="json"),
        "stages": _STRATEGY.dump_python(stages, mode="json"),
        "search": settings.search.model_dump(mode="json"),
        "built_with": info.built_with.model_dump(mode="json"),
        "index_version": info.index_version,
        "collection": settings.store.collection,
        "llm": settings.llm_model,
    }


def run_rerank_stages(ask: Ask, found: SearchResult, tools: Tools) -> SearchResult:
    """What the rerank pool does of a leaf: the stage rerank and what follows it."""
    _, rest = split(tools.settings.stages_of(ask.strategy))
    run, before = go_on_variants if ask.variants else go_on, SearchResult(hits=found.hits, mode=found.mode)
    compute = partial(run, before, _query(ask), rest, tools, explain=ask.explain)
    if not rest:
        return _after(found, compute())
    parts = {
        **ask.model_dump(mode="json"),
        "stages": _STRATEGY.dump_python(rest, mode="json"),
        "hits": [
            [hit.chunk_id, hit.title, hit.heading, hit.text, hit.score, hit.parts.get(VARIANT), str(hit.via or "")]
            for hit in found.hits
        ],
    }
    after, result = reranked_once(tools, parts, SearchResult, compute)
    return _reused(_after(found, after), result)


def reranked_once(
    tools: Tools, parts: Mapping[str, object], model: type[R], compute: Callable[[], R]
) -> tuple[R, CacheResult]:
    """What `compute` gives, once for all who ask with the same `parts` and reranker.

    One with warnings is a fallback: it is shown to its own job and not kept for others.
    """
    if tools.cache is None:
        return compute(), CacheResult(status=CacheStatus.BYPASSED)
    key = {
        **parts,
        "reranker": tools.reranker.name if tools.reranker else "none",
        "settings": tools.settings.rerank.model_dump(mode="json", exclude={"api_key"}),
    }
    wait_s = min(tools.settings.cache.wait_s, tools.timeout_s)
    return tools.cache.get_or_compute(
        "rerank", key, model, compute, wait_s=wait_s, keep=lambda value: not value.warnings
    )


def _after(found: SearchResult, after: SearchResult) -> SearchResult:
    """The result of the rerank stages with what the search stages say of themselves, which is this job's own."""
    own = found.model_dump(include={"mode", "candidates", "rewrites", "strong_signal"})
    return after.model_copy(
        update={
            **own,
            "stages": (*found.stages, *after.stages),
            "timings_ms": {**found.timings_ms, **after.timings_ms},
            "warnings": tuple(dict.fromkeys((*found.warnings, *after.warnings))),
        }
    )


def _query(ask: Ask) -> Query:
    return Query(
        ask.text, ask.filters, ask.wanted, ask.tenant, variants=ask.variants, near_symbol=ask.near_symbol,
        depth=ask.depth, facet=ask.facet,
    )  # fmt: skip


def _told(found: SearchResult, ask: Ask, stages: Strategy) -> SearchResult:
    """The result, with a warning when edges were asked for that the strategy does not follow."""
    if not (ask.near_symbol or ask.depth) or any(isinstance(stage, EdgesStage) for stage in stages):
        return found
    asked = "near_symbol" if ask.near_symbol else "depth"
    warning = (
        f"{asked} changed nothing: the strategy {ask.strategy} follows no edges; leave it out for {FOLLOWS_EDGES}."
    )
    return found.model_copy(update={"warnings": (*found.warnings, warning)})


def _reused(found: SearchResult, result: CacheResult) -> SearchResult:
    """What was found before costs nothing now; a cache that did not work is a warning."""
    if result.warning:
        found = found.model_copy(update={"warnings": (*found.warnings, result.warning)})
    return found.model_copy(update={"cost": Cost()}) if result.reused else found
