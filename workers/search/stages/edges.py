"""Two-pass search: from the best hits along links, mentions and calls to what the question alone does not find.

A hop asks the store twice: which keys are ambiguous, and, in one batch, for the neighbours of all anchors. Behind a
rerank, neighbours keep a share of the score of the hit that led to them: they may share no word with the question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import ceil

from qdrant_client import models

from shared.language.page_keys import is_page_key
from shared.models import Hit
from shared.models.hits import Via
from shared.settings import stages as s
from shared.store import DENSE, SPARSE, to_filter, to_sparse
from shared.store.schema import one_of
from workers.search.stages import edge_keys
from workers.search.stages.edge_keys import Neighbour
from workers.search.stages.near import MAX_CALLERS, MAX_MEANINGS, callers_first, near_symbol_anchors
from workers.search.state import Candidate, SearchState, Tools, by_score

#: Keys of one anchor that are followed each way, and chunks of one anchor that the next hop starts from.
_MAX_KEYS, _MAX_STARTS = 200, 10
#: Neighbours that one request asks for at least, however many anchors share a hop.
_MIN_NEIGHBOURS = 8


@dataclass(frozen=True, slots=True)
class _HopStart:
    """Score, the chunks that this hop starts from, and the places of each key that is followed (None: all)."""

    score: float
    starts: tuple[edge_keys.EdgeEnds, ...]
    places: Mapping[str, int] | None = None

    def keys(self) -> list[str]:
        """What it leads to."""
        return self._followed(key for start in self.starts for key in start.keys)

    def names(self) -> list[str]:
        """What leads to it."""
        return self._followed(name for start in self.starts for name in sorted(start.names))

    def _followed(self, keys: Iterable[str]) -> list[str]:
        first = list(dict.fromkeys(keys))[:_MAX_KEYS]
        return first if self.places is None else [key for key in first if key in self.places]


def edges(state: SearchState, options: s.EdgesStage, tools: Tools) -> SearchState:
    """Add the neighbours of the best hits, or of the symbol that was asked for, hop by hop.

    Score: anchor / (1 + hop) * (1 - relevance + relevance * r) / places. `r` is how well the neighbour fits the
    question, 1 for the best of its hop and 0 for the worst (cosine, else BM25); `places` is how many definitions its
    key may mean. A hit that the question found itself rises to that score if it was lower, and never falls.

    From a symbol that was asked for, the first hop follows calls completely and gives them precedence (`near`).
    """
    depth = state.query.depth or options.depth
    state = state.but(query=replace(state.query, depth=depth))
    state, starts = near_symbol_anchors(state, tools)
    symbol = bool(starts)
    if not starts and not state.query.near_symbol:
        starts = [(one.score, [one.hit]) for one in state.candidates[: options.anchors] if one.score > 0]
    if not starts:
        return state.skip("nothing to start from")
    anchors = [_HopStart(score, tuple(edge_keys.edge_ends(hit) for hit in hits)) for score, hits in starts]
    seen = {start.hit.chunk_id for anchor in anchors for start in anchor.starts}
    dropped: set[str] = set()
    for hop in range(1, depth + 1):
        called = symbol and hop == 1
        places, ambiguous = _count_places(anchors, state, MAX_MEANINGS if called else options.ambiguous, tools)
        dropped |= ambiguous
        anchors = [replace(anchor, places=places) for anchor in anchors]
        limit = MAX_CALLERS if called else max(_MIN_NEIGHBOURS, ceil(options.neighbours / len(anchors)))
        neighbours = _neighbours(anchors, seen, state, limit, tools)
        if called:
            state, neighbours = callers_first(neighbours, state, options.neighbours)
        neighbours = _interleaved(neighbours, options)
        state = state.but(candidates=_joined(state.candidates, anchors, neighbours, hop, options))
        seen |= {one.hit.chunk_id for found in neighbours for one in found}
        anchors = [
            _HopStart(anchor.score, tuple(edge_keys.edge_ends(one.hit) for one in found[:_MAX_STARTS]))
            for anchor, found in zip(anchors, neighbours, strict=True)
            if found
        ]
        if not anchors:
            break
    return state.but(note=f"ambiguous names not followed: {len(dropped)}" if dropped else None)


def _count_places(
    anchors: Sequence[_HopStart], state: SearchState, limit: int, tools: Tools
) -> tuple[dict[str, int], frozenset[str]]:
    """The keys of all anchors that are followed, each with the places that it may mean, and the ambiguous ones.

    Counted over the whole namespace, whatever the question's filter: pages by their first chunk, code by definition.
    """
    keys = list(dict.fromkeys(key for anchor in anchors for key in (*anchor.keys(), *anchor.names())))
    if not keys:
        return {}, frozenset()
    counts = edge_keys.places_of(keys, state.query.filters.namespace, tools.need_store()[0])
    places = edge_keys.unambiguous(keys, counts, limit)
    return places, frozenset(keys) - places.keys()


def _neighbours(
    anchors: Sequence[_HopStart], seen: Iterable[str], state: SearchState, limit: int, tools: Tools
) -> list[list[Neighbour]]:
    """What each anchor leads to and what leads to it, `limit` each way, best first, in one call to the store."""
    store, _ = tools.need_store()
    known = models.HasIdCondition(has_id=list(seen))
    requests = [
        (number, request)
        for number, anchor in enumerate(anchors)
        for joined in _edge_filters(anchor)
        for request in _requests(
            models.Filter(must=[to_filter(state.query.filters), joined], must_not=[known]), limit, state, tools
        )
    ]
    found: list[dict[str, Hit]] = [{} for _ in anchors]
    for (number, request), hits in zip(requests, store.query([one for _, one in requests]), strict=True):
        for hit in hits:
            scored = hit if request.query is not None else hit.model_copy(update={"score": 0.0})
            found[number].setdefault(hit.chunk_id, scored)
    neighbours = [_with_edges(anchor, hits.values()) for anchor, hits in zip(anchors, found, strict=True)]
    return _with_relevance(neighbours, edge_keys.asked_direction(state.query.text))


def _edge_filters(anchor: _HopStart) -> list[models.Condition]:
    """What an anchor leads to, and what leads to it."""
    out, back = anchor.keys(), anchor.names()
    filters: list[models.Condition] = [one_of("defines", out)] if out else []
    return [*filters, models.Filter(should=[one_of("refs", back), one_of("mentions", back)])] if back else filters


def _requests(flt: models.Filter, limit: int, state: SearchState, tools: Tools) -> list[models.QueryRequest]:
    """The neighbours nearest to the question; without its vector those that share words with it, then any."""
    plain = tools.request(flt, limit)
    if state.vector:
        return [plain.model_copy(update={"query": list(state.vector), "using": DENSE})]
    words = to_sparse(tools.need_store()[1].encode_query(state.query.text))
    return [plain.model_copy(update={"query": words, "using": SPARSE}), plain]


def _with_edges(anchor: _HopStart, hits: Iterable[Hit]) -> list[Neighbour]:
    """The hits that an edge joins with the anchor, each with its least ambiguous edge."""
    neighbours, places = [], anchor.places or {}
    for hit in hits:
        other = edge_keys.edge_ends(hit)
        found = []
        for start in anchor.starts:
            if edge := edge_keys.edge_between(start, other, places):
                found.append((start.hit.chunk_id, edge))
            if edge := edge_keys.edge_between(other, start, places):
                found.append((start.hit.chunk_id, edge_keys.backwards(edge)))
        if found:
            start_id, edge = min(
                found, key=lambda one: (one[1].places, not edge_keys.has_direction(one[1].how, "back"))
            )
            neighbours.append(Neighbour(hit, start_id, edge, hit.score))
    return neighbours


def _with_relevance(groups: list[list[Neighbour]], direction: edge_keys.Direction | None) -> list[list[Neighbour]]:
    """Relevances scaled over the whole hop, 0..1, and every group in their order.

    Where the question says the direction ("what calls X"), neighbours in the other one get the lower half of the scale.
    """
    scores = [one.relevance for group in groups for one in group]
    low, span = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)

    def scaled(one: Neighbour) -> Neighbour:
        relevance = (one.relevance - low) / span if span > 0 else 1.0
        if direction is not None:
            relevance = (relevance + edge_keys.has_direction(one.edge.how, direction)) / 2
        return one._replace(relevance=relevance)

    return [
        sorted(map(scaled, group), key=lambda one: (-one.relevance / one.edge.places, one.hit.chunk_id))
        for group in groups
    ]


def _interleaved(groups: list[list[Neighbour]], options: s.EdgesStage) -> list[list[Neighbour]]:
    """At most `neighbours`, of each anchor in turn, no chunk twice; a linked page gives its best `page_chunks`.

    Those with a precedence are all kept, and are not counted.
    """
    kept: list[list[Neighbour]] = [[] for _ in groups]
    taken: set[str] = set()
    counted = 0
    capped = [_page_capped(group, options.page_chunks) for group in groups]
    for turn in zip_longest(*capped):
        for number, one in enumerate(turn):
            if one is None or one.hit.chunk_id in taken:
                continue
            if one.precedence is not None or counted < options.neighbours:
                counted += one.precedence is None
                taken.add(one.hit.chunk_id)
                kept[number].append(one)
    return kept


def _page_capped(group: list[Neighbour], limit: int) -> list[Neighbour]:
    counts: Counter[str] = Counter()
    kept = []
    for one in group:
        counts[one.hit.doc_id] += is_page_key(one.edge.key)
        if not is_page_key(one.edge.key) or counts[one.hit.doc_id] <= limit:
            kept.append(one)
    return kept


def _joined(
    candidates: Sequence[Candidate],
    anchors: Sequence[_HopStart],
    neighbours: list[list[Neighbour]],
    hop: int,
    options: s.EdgesStage,
) -> tuple[Candidate, ...]:
    known = {candidate.hit.chunk_id: candidate for candidate in candidates}
    for anchor, found in zip(anchors, neighbours, strict=True):
        for one in found:
            fit = 1 - options.relevance + options.relevance * one.relevance
            score = anchor.score / (1 + hop) * fit / one.edge.places
            old = known.get(one.hit.chunk_id) or Candidate(one.hit.model_copy(update={"parts": {}}), 0.0)
            if score <= old.score and one.precedence is None:
                continue
            score = max(score, old.score)
            via = Via(chunk_id=one.start_id, bridge=one.edge.key, hop=hop, how=one.edge.how, precedence=one.precedence)
            new = old._replace(hit=old.hit.model_copy(update={"via": via, "parts": {**old.hit.parts, "edge": score}}))
            known[one.hit.chunk_id] = new.plus(
                "edges", score - old.score,
                anchor=anchor.score, hop=hop, relevance=one.relevance, share=options.relevance, places=one.edge.places,
            )  # fmt: skip
    return by_score(tuple(known.values()))


def linked(state: SearchState, options: s.LinkedStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """The n-th best neighbour of a hit keeps at least share^n of that hit's score; no score falls.

    Neighbours are counted in the order that the reranker gave them, so that fifty of them cannot flood the results:
    with 0.8 the first has 0.8 of it, the fifth a third. Nearer hops go first, since what they lift, lifts others. The
    symbol that was asked for leads. Scores of 0 and below lift nothing.
    """
    if not any(candidate.hit.via for candidate in state.candidates):
        return state.skip("no hit was reached from another one")
    best = max(candidate.score for candidate in state.candidates)
    now = {candidate.hit.chunk_id: candidate for candidate in state.candidates}
    for chunk_id, candidate in now.items():
        if _is_near_symbol(candidate) and candidate.score < best:
            now[chunk_id] = candidate.plus("linked", best - candidate.score, best=best, symbol="asked for")
    for anchor_id, neighbours in _by_anchor(state, now):
        anchor = now[anchor_id].score
        for place, candidate in enumerate(neighbours, start=1):
            lift = options.share**place * anchor - candidate.score
            if lift > 0:
                detail = {"anchor": anchor, "share": options.share, "place": place}
                now[candidate.hit.chunk_id] = candidate.plus("linked", lift, **detail)
    return state.but(candidates=by_score(tuple(now.values())))


def _is_near_symbol(candidate: Candidate) -> bool:
    return candidate.hit.via is not None and candidate.hit.via.how == "symbol"


def _by_anchor(state: SearchState, now: Mapping[str, Candidate]) -> list[tuple[str, list[Candidate]]]:
    """(anchor, its neighbours best first), the first hop first. Anchors that were cut off lift nothing."""
    groups: dict[tuple[int, str], list[Candidate]] = {}
    for candidate in state.candidates:
        via = candidate.hit.via
        if via is not None and not _is_near_symbol(candidate) and via.chunk_id in now:
            groups.setdefault((via.hop, via.chunk_id), []).append(candidate)
    return [(anchor_id, groups[hop, anchor_id]) for hop, anchor_id in sorted(groups)]
