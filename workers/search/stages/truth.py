"""Compiled truth: a page that is found shows what it holds to be true, not only what was said on the way there."""

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

#: Truth chunks read for one page.
_PER_PAGE = 4
_H = TypeVar("_H", bound=Hit)
#: The answers for the states of tenants that were searched lately.
_MOST_HELD = 256
_HOLDS: dict[tuple[str, str, str, str, int], bool] = {}


def truth(state: SearchState, options: s.TruthStage, tools: Tools) -> SearchState:
    """Put the best truth chunk of every page right behind the page's best chunk, at `share` of its score.

    Before the rerank, truth that the question did not find is fetched, in one call for all pages. Behind it, on a pool
    without a store, what was fetched is put back where it belongs. A truth chunk that stands higher stays there.
    """
    if tools.store is not None:
        if not _holds_truth(tools.store, tools):
            return state.skip("no page has compiled truth")
        state = state.but(candidates=(*state.candidates, *_fetched(state, tools)))
    best: dict[str, Candidate] = {}
    true: dict[str, Candidate] = {}
    for candidate in state.candidates:
        page = candidate.hit.doc_id
        best.setdefault(page, candidate)
        if candidate.hit.part is PagePart.TRUTH:
            true.setdefault(page, candidate)
    lifted = {
        candidate.hit.chunk_id: candidate.plus("truth", least - candidate.score, page=best[page].score)
        for page, candidate in true.items()
        if candidate.score < (least := _just_under(best[page].score, options.share))
    }
    if not lifted:
        return state
    return state.but(candidates=by_score([lifted.get(c.hit.chunk_id, c) for c in state.candidates]))


def keep_truth(hits: Sequence[_H], limit: int) -> tuple[_H, ...]:
    """The first `limit` hits. Where a page among them has its truth only behind the cut, that replaces its last hit."""
    kept = list(hits[:limit])
    held = {hit.doc_id for hit in kept if hit.part is PagePart.TRUTH}
    for hit in hits[limit:]:
        if hit.part is not PagePart.TRUTH or hit.doc_id in held:
            continue
        at = next((n for n in range(len(kept) - 1, -1, -1) if kept[n].doc_id == hit.doc_id), None)
        if at is not None:
            held.add(hit.doc_id)
            kept[at] = hit
    return tuple(kept)


def _just_under(score: float, share: float) -> float:
    return score * share if score > 0 else score / share


def _holds_truth(store: ChunkStore, tools: Tools) -> bool:
    """Whether the tenant has any truth at all: asked once for each state of the collection."""
    where = tools.settings.store
    state = (str(tools.settings.data_dir), str(where.url), where.collection, store.tenant, tools.index_version)
    holds = _HOLDS.get(state) if tools.index_version else None
    if holds is None:
        holds = bool(store.lookup(models.Filter(must=[_is_truth()]), 1))
        if len(_HOLDS) >= _MOST_HELD:
            _HOLDS.clear()
        _HOLDS[state] = holds
    return holds


def _fetched(state: SearchState, tools: Tools) -> list[Candidate]:
    """For each page without truth among the candidates its chunk of truth nearest to the question, else its first."""
    store, _ = tools.need_store()
    held = {candidate.hit.doc_id for candidate in state.candidates if candidate.hit.part is PagePart.TRUTH}
    pages = [page for page in dict.fromkeys(c.hit.doc_id for c in state.candidates) if page not in held]
    if not pages:
        return []
    of_pages = one_of("doc_id", pages)
    flt = models.Filter(must=[to_filter(state.query.filters), _is_truth(), of_pages])
    found = store.lookup(flt, _PER_PAGE * len(pages), tools.dense is not None)
    best: dict[str, Hit] = {}
    for hit in sorted(found, key=lambda hit: (-similarity(state.vector, hit.vector), hit.ordinal)):
        best.setdefault(hit.doc_id, hit)
    floor = min(candidate.score for candidate in state.candidates)
    return [Candidate(hit, 0.0).plus("truth", floor, fetched="yes") for hit in best.values()]


def _is_truth() -> models.FieldCondition:
    return equals("part", PagePart.TRUTH.value)
