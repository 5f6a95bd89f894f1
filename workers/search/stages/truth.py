"""Compiled truth: a page that is found by its timeline also shows the part that says what holds now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from qdrant_client import models

from shared.models import Hit
from shared.models.hits import PagePart
from shared.settings import stages as s
from shared.store import ChunkStore, to_filter
from shared.store.schema import equals, one_of
from workers.search.stages.rescoring import similarity
from workers.search.state import Candidate, SearchState, Tools, by_score

_IS_TRUTH = equals("part", PagePart.TRUTH.value)
#: Truth chunks read for one page.
_PER_PAGE = 4
_H = TypeVar("_H", bound=Hit)
#: Whether a tenant has truth, by the state of its collection; emptied when full.
_MAX_STATES = 256
_HAS_TRUTH: dict[tuple[str, str, str, str, int], bool] = {}


def truth(state: SearchState, options: s.TruthStage, tools: Tools) -> SearchState:
    """Put the best truth chunk of every page right behind the page's best chunk, at `share` of its score.

    Before the rerank, truth that the question did not find is fetched, in one call for all pages. Behind it, on a pool
    without a store, the same rule applies to the reranked scores. A truth chunk that stands higher stays there.
    """
    if tools.store is not None:
        if not _has_truth(tools.store, tools):
            return state.skip("no page has compiled truth")
        state = state.but(candidates=(*state.candidates, *_fetched(state, tools)))
    best: dict[str, Candidate] = {}
    truths: dict[str, Candidate] = {}
    for candidate in state.candidates:
        page = candidate.hit.doc_id
        best.setdefault(page, candidate)
        if candidate.hit.part is PagePart.TRUTH:
            truths.setdefault(page, candidate)
    lifted = {}
    for page, candidate in truths.items():
        score = best[page].score
        least = score * options.share if score > 0 else score / options.share
        if candidate.score < least:
            lifted[candidate.hit.chunk_id] = candidate.plus("truth", least - candidate.score, page=score)
    if not lifted:
        return state
    return state.but(candidates=by_score([lifted.get(c.hit.chunk_id, c) for c in state.candidates]))


def keep_truth(hits: Sequence[_H], limit: int) -> tuple[_H, ...]:
    """The first `limit` hits. A page whose truth stands only behind the cut has it in place of its last hit."""
    kept = list(hits[:limit])
    with_truth = {hit.doc_id for hit in kept if hit.part is PagePart.TRUTH}
    last = {hit.doc_id: place for place, hit in enumerate(kept)}
    for hit in hits[limit:]:
        if hit.part is PagePart.TRUTH and hit.doc_id in last.keys() - with_truth:
            with_truth.add(hit.doc_id)
            kept[last[hit.doc_id]] = hit
    return tuple(kept)


def _has_truth(store: ChunkStore, tools: Tools) -> bool:
    """Whether the tenant has any truth: asked once for each state of the collection."""
    where = tools.settings.store
    state = (str(tools.settings.data_dir), str(where.url), where.collection, store.tenant, tools.index_version)
    if not tools.index_version or state not in _HAS_TRUTH:
        if len(_HAS_TRUTH) >= _MAX_STATES:
            _HAS_TRUTH.clear()
        _HAS_TRUTH[state] = bool(store.lookup(models.Filter(must=[_IS_TRUTH]), 1))
    return _HAS_TRUTH[state]


def _fetched(state: SearchState, tools: Tools) -> list[Candidate]:
    """For each page without truth among the candidates its chunk of truth nearest to the question, else its first."""
    store, _ = tools.need_store()
    held = {candidate.hit.doc_id for candidate in state.candidates if candidate.hit.part is PagePart.TRUTH}
    pages = [page for page in dict.fromkeys(c.hit.doc_id for c in state.candidates) if page not in held]
    if not pages:
        return []
    flt = models.Filter(must=[to_filter(state.query.filters), _IS_TRUTH, one_of("doc_id", pages)])
    found = store.lookup(flt, _PER_PAGE * len(pages), tools.dense is not None)
    best: dict[str, Hit] = {}
    for hit in sorted(found, key=lambda hit: (-similarity(state.vector, hit.vector), hit.ordinal)):
        best.setdefault(hit.doc_id, hit)
    floor = min(candidate.score for candidate in state.candidates)
    return [Candidate(hit, 0.0).plus("truth", floor, fetched="yes") for hit in best.values()]
