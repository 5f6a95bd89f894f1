"""One question through a strategy, with results that were found before taken from the cache. Knows no task and no job.

The search pool runs the stages up to the rerank, the rerank pool the rest.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from pydantic import TypeAdapter

from shared.cache import LEAF, Cache, CacheResult
from shared.language.symbols import named_symbol
from shared.models import Cost, Facet, Filters, JobRequest, Node, SearchResult
from shared.models.base import Model
from shared.models.find import FindRequest
from shared.providers.fallbacks import fallbacks_so_far
from shared.providers.http_deadline import until
from shared.settings import Settings
from shared.settings.sections import MultiQuerySettings
from shared.settings.stages import EdgesStage
from shared.settings.strategies import FOLLOWS_EDGES, NO_STRATEGY, PluginStage, Strategy, asked_strategy, split
from shared.store.base import CollectionInfo
from workers.search.engine import EMPTY_COLLECTION, continue_search, continued, search
from workers.search.resources import SearchResources
from workers.search.state import Query, Tools
from workers.search.variants import continue_variants, merge_variants, search_variants

#: The result while nothing is ingested.
NOTHING_INGESTED = SearchResult(mode=NO_STRATEGY, warnings=(EMPTY_COLLECTION,))
_STRATEGY = TypeAdapter(Strategy)


class LeafQuery(Model):
    """What decides a leaf's outcome besides the corpus: a `Query`, its strategy, and whether scores are explained."""

    text: str
    strategy: str
    filters: Filters
    tenant: str
    wanted: int
    explain: bool = False
    variants: tuple[str, ...] = ()
    near_symbol: str | None = None
    read_symbol: str | None = None
    shown: int = 0
    depth: int | None = None
    facet: str = ""

    def query(self) -> Query:
        """What the stages get of it."""
        return Query(**{name: value for name, value in self if name not in {"strategy", "explain"}})


def _strategy_of(request: JobRequest | FindRequest, settings: Settings, node: Node) -> str:
    """The strategy that searches a leaf: that of the request, of its mode, of the question's type, or the default.

    Where the request names none, two_pass goes first if edges are wanted or the text asks about a symbol of code.
    """
    read = FOLLOWS_EDGES if named_symbol(node.query) else None
    return asked_strategy(request) or read or node.strategy or settings.search.strategy


def leaf_query(
    request: JobRequest | FindRequest, node: Node, settings: Settings, wanted: int | None = None
) -> LeafQuery:
    """The query of a leaf, of a job or by itself. The request's own strategy goes before that of the question's type.

    `wanted`: candidates; None: as many as the settings say.
    """
    shown = request.top_n or settings.multi_query.max_total_results
    symbol = request.near_symbol or named_symbol(node.query)
    return LeafQuery(
        text=node.query,
        strategy=_strategy_of(request, settings, node),
        filters=_narrowed(request.filters, node),
        tenant=request.tenant,
        wanted=wanted or settings.multi_query.candidates_per_query,
        explain=request.explain,
        variants=node.variants,
        near_symbol=request.near_symbol,
        read_symbol=symbol,
        shown=shown if symbol else 0,
        depth=request.depth,
        facet=node.facet.stored,
    )


def _narrowed(filters: Filters, node: Node) -> Filters:
    """The request's filter, and of the node's kinds those that it allows: never more than the request may see."""
    kinds = tuple(kind for kind in node.kinds if not filters.kinds or kind in filters.kinds)
    return filters.model_copy(update={"kinds": kinds}) if kinds else filters


def leaf_result_limit(node: Node, limits: MultiQuerySettings, shown: int) -> int:
    """Results that a leaf keeps. The question's own leaf keeps all `shown` in an answer: others overlap with it.

    A leaf that waited for others keeps twice as many as they do: it speaks for several names, and the evidence that
    only it can find ranks low in them (musique, names for answers: All@10 64.7 against 59.6; answers: 81.8, 79.5).
    """
    if node.facet is Facet.ORIGINAL:
        return max(limits.top_n_per_leaf, shown)
    return limits.top_n_per_leaf * (2 if node.depends_on else 1)


def run_search_stages(
    leaf: LeafQuery, resources: SearchResources, cache: Cache | None, timeout_s: float, settings: Settings | None = None
) -> SearchResult:
    """The stages up to the rerank. Raises: InputError for an unknown strategy, the store's errors.

    Every call of a server ends within `timeout_s`, with its retries and waits. `settings`: None: those of the process.
    """
    settings = settings or resources.settings
    with until(time.monotonic() + timeout_s):
        stages, _ = split(settings.stages_of(leaf.strategy))
        ready = resources.tools(leaf.tenant)
        if ready is None:
            return NOTHING_INGESTED
        info, tools = ready
        tools = replace(tools, settings=settings, timeout_s=timeout_s, index_version=info.index_version)
        run = search_variants if leaf.variants else search

        compute = partial(run, leaf.query(), leaf.strategy, stages, tools, explain=leaf.explain)
        if cache is None or not settings.cache.leaves or not _worth_keeping(stages, tools):
            return _told(compute(), leaf, stages, info)
        before = fallbacks_so_far()
        found, result = cache.get_or_compute(
            LEAF,
            _search_key(leaf, stages, info, settings),
            SearchResult,
            compute,
            wait_s=tools.cache_wait_s,
            # A leaf cut short by its job's budget or time, or made without a model that failed, is not for others.
            keep=lambda _: fallbacks_so_far() == before,
        )
        return _with_cache_result(_told(found, leaf, stages, info), result)


def _worth_keeping(stages: Strategy, tools: Tools) -> bool:
    """Whether to ask the cache at all: keywords in the embedded store are searched again for less than that costs."""
    if tools.dense is not None or tools.settings.store.kind == "server":
        return True
    return any(isinstance(stage, PluginStage) or (stage.stage == "expansion" and tools.llm) for stage in stages)


def _search_key(leaf: LeafQuery, stages: Strategy, info: CollectionInfo, settings: Settings) -> dict[str, object]:
    """Everything that decides what the search stages find."""
    return {
        **leaf.model_dump(mode="json"),
        "stages": _STRATEGY.dump_python(stages, mode="json"),
        "search": settings.search.model_dump(mode="json"),
        "layers": (settings.multi_query.search_depth, settings.multi_query.branch_limit),
        "built_with": info.built_with.model_dump(mode="json"),
        "index_version": info.index_version,
        "collection": settings.store.collection,
        "llm": settings.llm_model,
    }


def run_rerank_stages(leaf: LeafQuery, found: SearchResult, tools: Tools) -> SearchResult:
    """The stages of the rerank pool, on what the search stages found: all but `with_snippets`."""
    stages = tuple(stage for stage in split(tools.settings.stages_of(leaf.strategy))[1] if stage.stage != "enrich")
    run, bare = continue_variants if leaf.variants else continue_search, SearchResult(hits=found.hits, mode=found.mode)
    return continued(found, run(bare, leaf.query(), stages, tools, explain=leaf.explain))


def as_searched(leaf: LeafQuery, found: SearchResult) -> SearchResult:
    """What the search stages found, as it is recorded without the rest: each chunk once."""
    return found.model_copy(update={"hits": merge_variants(found.hits)}) if leaf.variants else found


def with_snippets(leaf: LeafQuery, kept: SearchResult, settings: Settings) -> SearchResult:
    """What is kept of a search behind its last stage, with the snippets of its strategy: most candidates are not."""
    if not kept.hits:
        return kept
    stages = tuple(stage for stage in split(settings.stages_of(leaf.strategy))[1] if stage.stage == "enrich")
    bare = SearchResult(hits=kept.hits, mode=kept.mode)
    shown = continue_search(bare, leaf.query(), stages, Tools(settings=settings), explain=leaf.explain)
    return kept.model_copy(update={"hits": shown.hits, "stages": (*kept.stages, *shown.stages)})


def _told(found: SearchResult, leaf: LeafQuery, stages: Strategy, info: CollectionInfo) -> SearchResult:
    """The result with the index version, and with a warning for edges that the strategy does not follow."""
    found = found.model_copy(update={"index_version": info.index_version})
    if not (leaf.near_symbol or leaf.depth) or any(isinstance(stage, EdgesStage) for stage in stages):
        return found
    asked, reason = "near_symbol" if leaf.near_symbol else "depth", f"the strategy {leaf.strategy} follows no edges"
    warning = f"{asked} changed nothing: {reason}; leave it out for {FOLLOWS_EDGES}."
    return found.model_copy(update={"warnings": (*found.warnings, warning)})


def _with_cache_result(found: SearchResult, result: CacheResult) -> SearchResult:
    """A result out of the cache costs nothing now; a cache that did not work is a warning."""
    if result.warning:
        found = found.model_copy(update={"warnings": (*found.warnings, result.warning)})
    return found.model_copy(update={"cost": Cost()}) if result.reused else found
