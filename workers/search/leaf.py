"""One question through a strategy, with what was found before reused (G5). Knows no task and no job."""

from __future__ import annotations

from dataclasses import replace

from pydantic import TypeAdapter

from shared.cache import Cache, Outcome
from shared.models import Cost, Filters, JobRequest, SearchResult
from shared.models.base import Model
from shared.settings import Settings
from shared.settings.strategies import Strategy, named, split
from workers.corpus import Corpus
from workers.search.engine import EMPTY, go_on, search
from workers.search.reuse import reranked_once
from workers.search.state import Query
from workers.search.tools import Tools

#: What is found while nothing is ingested.
NOTHING = SearchResult(mode="none", warnings=(EMPTY,))
_STRATEGY = TypeAdapter(Strategy)


class Ask(Model):
    """What decides a leaf's outcome besides the corpus. `wanted` is the number of results."""

    text: str
    strategy: str
    filters: Filters
    tenant: str = "default"
    wanted: int
    explain: bool = False


def ask_of(request: JobRequest, text: str, settings: Settings) -> Ask:
    """A leaf of a job. A mode is the strategy of its name."""
    name = request.strategy or (request.mode.value if request.mode else settings.search.strategy)
    return Ask(
        text=text,
        strategy=name,
        filters=request.filters,
        tenant=request.tenant,
        wanted=settings.multi_query.candidates_per_query,
        explain=request.explain,
    )


def search_half(ask: Ask, corpus: Corpus, cache: Cache | None, timeout_s: float) -> SearchResult:
    """What the search pool does of a leaf. Raises: InputError for an unknown strategy, the store's errors."""
    first, _ = split(named(corpus.settings.strategies, ask.strategy))
    ready = corpus.tools()
    if ready is None:
        return NOTHING
    info, tools = ready

    def compute() -> SearchResult:
        query = Query(ask.text, ask.filters, ask.wanted, ask.tenant)
        return search(query, ask.strategy, first, replace(tools, timeout_s=timeout_s), explain=ask.explain)

    if cache is None or not corpus.settings.cache.leaves:
        return compute()
    parts = {
        **ask.model_dump(mode="json"),
        "stages": _STRATEGY.dump_python(first, mode="json"),
        "search": corpus.settings.search.model_dump(mode="json"),
        "built_with": info.built_with.model_dump(mode="json"),
        "index_version": info.index_version,
        "collection": corpus.settings.store.collection,
        "llm": corpus.settings.llm_model,
    }
    found, outcome = cache.get_or_compute(
        "leaf", parts, SearchResult, compute, wait_s=min(corpus.settings.cache.wait_s, timeout_s)
    )
    return _reused(found, outcome=outcome)


def rerank_half(ask: Ask, found: SearchResult, tools: Tools) -> SearchResult:
    """What the rerank pool does of a leaf: the stage rerank and what follows it."""
    _, rest = split(named(tools.settings.strategies, ask.strategy))
    query = Query(ask.text, ask.filters, ask.wanted, ask.tenant)

    def compute() -> SearchResult:
        return go_on(found, query, rest, tools, explain=ask.explain)

    if not rest:
        return compute()
    parts = {
        **ask.model_dump(mode="json"),
        "stages": _STRATEGY.dump_python(rest, mode="json"),
        "hits": [[hit.chunk_id, hit.title, hit.heading, hit.text, hit.score] for hit in found.hits],
    }
    known = set(found.warnings)
    after, outcome = reranked_once(
        tools, parts, compute, model=SearchResult, fell_back=lambda after: bool(set(after.warnings) - known)
    )
    return _reused(after, outcome=outcome)


def _reused(result: SearchResult, *, outcome: Outcome) -> SearchResult:
    """What was found before costs nothing now; a cache that did not work is a warning."""
    if outcome.warning:
        result = result.model_copy(update={"warnings": (*result.warnings, outcome.warning)})
    return result.model_copy(update={"cost": Cost()}) if outcome.reused else result
