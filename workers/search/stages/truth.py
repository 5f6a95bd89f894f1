"""Compiled truth: a page that is found by its timeline also shows the part that says what holds now."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from qdrant_client import models

from shared.language.text import term_set, terms
from shared.models import Hit
from shared.models.hits import PagePart
from shared.models.route import Detail
from shared.settings import stages as s
from shared.store import ChunkStore, to_filter
from shared.store.schema import equals, one_of
from workers.search.language import question_route
from workers.search.stages.rescoring import similarity
from workers.search.state import Candidate, SearchState, Tools, by_score

_IS_TRUTH = equals("part", PagePart.TRUTH.value)
#: Chunks of one part read for one page.
_PER_PAGE = 4
#: Best pages whose timeline is fetched: each takes a place among the candidates that are reranked.
_TIMELINES = 10
#: Pages of a tenant with truth that are remembered; of more, each search asks.
_MOST_PAGES = 5000
#: Those pages by the state of its collection, None where they are too many; emptied when full.
_MAX_STATES = 256
_TRUTH_OF: dict[tuple[str, str, str, str, int], frozenset[str] | None] = {}


def truth(state: SearchState, options: s.TruthStage, tools: Tools) -> SearchState:
    """Put the best truth chunk of every page right behind the page's best chunk, at `share` of its score.

    The question's detail may turn that: at low (who or what something is) a timeline chunk never stands before its
    page's truth; at high (when, what happened) the page's best timeline chunk stands before it. Before the rerank, what
    the question did not find of these parts is fetched, in one call for all pages. Behind it, on a pool without a
    store, the same rule applies to the reranked scores.
    """
    pages_held = _pages_with_truth(tools.store, tools) if tools.store is not None else None
    if pages_held is not None and not pages_held:
        return state.skip("no page has compiled truth")
    if tools.store is None and _first_of(PagePart.TRUTH, state.candidates) is None:
        return state
    intent = question_route(state.query.text).intent
    detail = intent.detail if options.detail == "auto" else options.detail
    if tools.store is not None:
        state = state.but(candidates=(*state.candidates, *_fetched(state, detail, tools, pages_held)))
    pages: dict[str, list[Candidate]] = {}
    for candidate in by_score(state.candidates):
        pages.setdefault(candidate.hit.doc_id, []).append(candidate)
    changed: dict[str, Candidate] = {}
    for page in pages.values():
        changed |= {one.hit.chunk_id: one for one in _ordered(page, detail, options.share)}
    if not changed:
        return state
    return state.but(candidates=by_score([changed.get(c.hit.chunk_id, c) for c in state.candidates]))


def _ordered(page: Sequence[Candidate], detail: Detail, share: float) -> list[Candidate]:
    """The chunks of a page (best first) whose score changes: the first ones stand at score * share^0, share^1 ..."""
    held = _first_of(PagePart.TRUTH, page)
    if held is None:
        return []
    timeline = _first_of(PagePart.TIMELINE, page)
    first = [page[0], timeline, held] if detail == "high" and timeline else [page[0], held]
    if (detail == "low" and page[0] is timeline) or (detail == "high" and page[0] is held and timeline):
        first = [first[1], page[0]]
    order = list({one.hit.chunk_id: one for one in first}.values())
    turned = {one.hit.chunk_id for one in order} if order[0] is not page[0] else set()
    top = page[0].score
    steps = [top * share**place if top > 0 else top / share**place for place in range(len(order) + 1)]
    changed = [
        one.plus("truth", score - one.score, page=top, share=share, place=float(place), detail=detail)
        for place, (one, score) in enumerate(zip(order, steps, strict=False))
        if one.score < score or (one.score > score and turned)
    ]
    behind = [one for one in page if turned and one.hit.chunk_id not in turned and one.score > steps[-1]]
    last = {"page": top, "share": share, "place": float(len(order)), "detail": detail}
    return changed + [one.plus("truth", steps[-1] - one.score, **last) for one in behind]


def _first_of(part: PagePart, page: Sequence[Candidate]) -> Candidate | None:
    return next((one for one in page if one.hit.part is part), None)


def _pages_with_truth(store: ChunkStore, tools: Tools) -> frozenset[str] | None:
    """The tenant's pages that have truth, None for many: asked once for each state of the collection."""
    where = tools.settings.store
    state = (str(tools.settings.data_dir), str(where.url), where.collection, store.tenant, tools.index_version)
    if not tools.index_version or state not in _TRUTH_OF:
        if len(_TRUTH_OF) >= _MAX_STATES:
            _TRUTH_OF.clear()
        chunks = islice(store.read(models.Filter(must=[_IS_TRUTH]), ("doc_id",)), _MOST_PAGES + 1)
        pages = [stored["doc_id"] for _, stored in chunks]
        _TRUTH_OF[state] = frozenset(pages) if len(pages) <= _MOST_PAGES else None
    return _TRUTH_OF[state]


def _fetched(state: SearchState, detail: Detail, tools: Tools, pages_held: frozenset[str] | None) -> list[Candidate]:
    """Of each page that lacks a part among the candidates, its chunk of that part that is nearest to the question.

    A page without truth needs none; `pages_held`: those that have it, where they are known.
    """
    store, _ = tools.need_store()
    found = {(candidate.hit.doc_id, candidate.hit.part) for candidate in state.candidates}
    every = dict.fromkeys(c.hit.doc_id for c in state.candidates)
    pages = [page for page in every if pages_held is None or page in pages_held]
    wanted = {PagePart.TRUTH: pages, PagePart.TIMELINE: pages[:_TIMELINES] if detail == "high" else []}
    lacking = {(page, part) for part, of in wanted.items() for page in of} - found
    if not lacking:
        return []
    is_part = one_of("part", sorted({part.value for _, part in lacking}))
    flt = models.Filter(
        must=[to_filter(state.query.filters), is_part, one_of("doc_id", sorted({page for page, _ in lacking}))]
    )
    read = store.lookup(flt, _PER_PAGE * len(lacking), tools.dense is not None)
    asked = frozenset(terms(state.query.text))

    def nearness(hit: Hit) -> tuple[float, int, int]:
        return -similarity(state.vector, hit.vector), -len(asked & term_set(hit.text)), hit.ordinal

    best: dict[tuple[str, PagePart], Hit] = {}
    for hit in sorted(read, key=nearness):
        best.setdefault((hit.doc_id, hit.part), hit)
    floor = min(candidate.score for candidate in state.candidates)
    held = {page for page, part in (*found, *best) if part is PagePart.TRUTH}
    return [
        Candidate(hit, 0.0).plus("truth", floor, fetched="yes")
        for (page, part), hit in best.items()
        if (page, part) in lacking and page in held
    ]
