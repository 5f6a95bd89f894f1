"""Two-pass search: from the best hits along links, mentions and calls to what the question alone does not find.

A hop asks the store twice: which keys are ambiguous, and, in one batch, for the neighbours of all anchors. Behind a
rerank, linked hits keep a share of the score of the hit that led to them: they may share no word with the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import ceil
from typing import NamedTuple

from qdrant_client import models

from shared.models import Hit
from shared.models.hits import Via
from shared.settings import stages as s
from shared.store import DENSE, SPARSE, to_filter, to_sparse
from shared.store.schema import one_of
from workers.search.stages.edge_keys import (
    Direction,
    Edge,
    Ends,
    asked_direction,
    edge_between,
    ends,
    has_direction,
    of_page,
    places_of,
    turned,
    unambiguous,
)
from workers.search.stages.near import asked_for
from workers.search.state import Candidate, SearchState, Tools, by_score

#: Keys of one anchor that are followed each way, and chunks of one anchor that the next hop starts from.
_KEYS, _BRANCH = 200, 10
#: Neighbours that one request asks for at least, however many anchors share a hop.
_FEWEST = 8


class _Reached(NamedTuple):
    hit: Hit
    start: str
    edge: Edge
    relevance: float


@dataclass(frozen=True, slots=True)
class _Group:
    """One anchor: its score, the chunks that this hop starts from, and the keys that are not ambiguous (None: all)."""

    score: float
    starts: tuple[Ends, ...]
    meant: Mapping[str, int] | None = None

    def keys(self) -> list[str]:
        """What it leads to."""
        return self._meant(key for start in self.starts for key in start.keys)

    def names(self) -> list[str]:
        """What leads to it."""
        return self._meant(name for start in self.starts for name in sorted(start.names))

    def _meant(self, keys: Iterable[str]) -> list[str]:
        first = list(dict.fromkeys(keys))[:_KEYS]
        return first if self.meant is None else [key for key in first if key in self.meant]


def edges(state: SearchState, options: s.EdgesStage, tools: Tools) -> SearchState:
    """Add the neighbours of the best hits, or of the symbol that was asked for, hop by hop.

    Score: anchor / (1 + hop) * (1 - relevance + relevance * r) / places. `r` is how well the neighbour fits the
    question, 1 for the best of its hop and 0 for the worst (cosine, else BM25); `places` is how many definitions its
    key may mean. A hit that the question found itself rises to that score if it was lower, and never falls.
    """
    depth = state.query.depth or options.depth
    state = state.but(query=replace(state.query, depth=depth))
    state, anchors = asked_for(state, tools) if state.query.near_symbol else (state, _best(state, options))
    if not anchors:
        return state.skip("nothing to start from")
    groups = [_Group(score, tuple(ends(hit) for hit in hits)) for score, hits in anchors]
    seen = {start.hit.chunk_id for group in groups for start in group.starts}
    dropped: set[str] = set()
    for hop in range(1, depth + 1):
        meant, ambiguous = _unambiguous(groups, state, options, tools)
        dropped |= ambiguous
        groups = [replace(group, meant=meant) for group in groups]
        reached = _fair(_neighbours(groups, seen, state, options, tools), options)
        state = state.but(candidates=_joined(state.candidates, groups, reached, hop, options))
        seen |= {one.hit.chunk_id for found in reached for one in found}
        groups = [
            _Group(group.score, tuple(ends(one.hit) for one in found[:_BRANCH]))
            for group, found in zip(groups, reached, strict=True)
            if found
        ]
        if not groups:
            break
    return state.but(note=f"ambiguous names not followed: {len(dropped)}" if dropped else None)


def _best(state: SearchState, options: s.EdgesStage) -> list[tuple[float, list[Hit]]]:
    best = state.candidates[: options.anchors]
    return [(candidate.score, [candidate.hit]) for candidate in best if candidate.score > 0]


def _unambiguous(
    groups: Sequence[_Group], state: SearchState, options: s.EdgesStage, tools: Tools
) -> tuple[dict[str, int], frozenset[str]]:
    """The keys of all groups that are followed, each with the places that it may mean, and the ambiguous ones.

    Counted over the whole namespace, whatever the question's filter: pages by their first chunk, code by definition.
    """
    store, _ = tools.need_store()
    keys = list(dict.fromkeys(key for group in groups for key in (*group.keys(), *group.names())))
    if not keys:
        return {}, frozenset()
    counts = places_of(keys, state.query.filters.namespace, store)
    meant = unambiguous(keys, counts, options.ambiguous)
    return meant, frozenset(keys) - meant.keys()


def _neighbours(
    groups: Sequence[_Group], seen: Iterable[str], state: SearchState, options: s.EdgesStage, tools: Tools
) -> list[list[_Reached]]:
    """What each group leads to and what leads to it, best first, in one call to the store."""
    store, _ = tools.need_store()
    limit = max(_FEWEST, ceil(options.neighbours / len(groups)))
    known = models.HasIdCondition(has_id=list(seen))
    requests: list[models.QueryRequest] = []
    owners: list[int] = []
    for number, group in enumerate(groups):
        for way in _ways(group):
            flt = models.Filter(must=[to_filter(state.query.filters), way], must_not=[known])
            asked = _asked(flt, limit, state, tools)
            requests += asked
            owners += [number] * len(asked)
    found: list[dict[str, Hit]] = [{} for _ in groups]
    for number, request, hits in zip(owners, requests, store.query(requests), strict=True):
        for hit in hits:
            scored = hit if request.query is not None else hit.model_copy(update={"score": 0.0})
            found[number].setdefault(hit.chunk_id, scored)
    reached = [_reached(group, hits.values()) for group, hits in zip(groups, found, strict=True)]
    return _with_relevance(reached, asked_direction(state.query.text))


def _ways(group: _Group) -> list[models.Condition]:
    """Out along the edges of a group, and back along those that lead to it."""
    out, back = group.keys(), group.names()
    ways: list[models.Condition] = [one_of("defines", out)] if out else []
    return [*ways, models.Filter(should=[one_of("refs", back), one_of("mentions", back)])] if back else ways


def _asked(flt: models.Filter, limit: int, state: SearchState, tools: Tools) -> list[models.QueryRequest]:
    """The neighbours nearest to the question; without its vector those that share words with it, then any."""
    _, sparse = tools.need_store()
    vectors = [DENSE] if tools.dense is not None else False
    plain = models.QueryRequest(filter=flt, limit=limit, with_payload=True, with_vector=vectors)
    if state.vector:
        return [plain.model_copy(update={"query": list(state.vector), "using": DENSE})]
    words = sparse.encode_query(state.query.text)
    by_words = to_sparse(words)
    return [plain.model_copy(update={"query": by_words, "using": SPARSE}), plain]


def _reached(group: _Group, hits: Iterable[Hit]) -> list[_Reached]:
    """The hits that an edge joins with the group, each with its surest edge."""
    reached, meant = [], group.meant or {}
    for hit in hits:
        other = ends(hit)
        found = [
            (start.hit.chunk_id, edge)
            for start in group.starts
            for edge in (edge_between(start, other, meant), _back(other, start, meant))
            if edge is not None
        ]
        if found:
            start_id, edge = min(found, key=lambda one: one[1].places)
            reached.append(_Reached(hit, start_id, edge, hit.score))
    return reached


def _back(other: Ends, start: Ends, meant: Mapping[str, int]) -> Edge | None:
    edge = edge_between(other, start, meant)
    return turned(edge) if edge is not None else None


def _with_relevance(groups: list[list[_Reached]], direction: Direction | None) -> list[list[_Reached]]:
    """Relevances scaled over the whole hop, 0..1, and every group in their order.

    Where the question tells the direction ("what calls X"), what lies in the other one has the lower half of the scale.
    """
    scores = [one.relevance for group in groups for one in group]
    low, span = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
    scaled = [
        [
            one._replace(relevance=_placed((one.relevance - low) / span if span > 0 else 1.0, one, direction))
            for one in group
        ]
        for group in groups
    ]
    return [sorted(group, key=lambda one: (-one.relevance / one.edge.places, one.hit.chunk_id)) for group in scaled]


def _placed(relevance: float, one: _Reached, direction: Direction | None) -> float:
    return relevance if direction is None else (relevance + has_direction(one.edge.how, direction)) / 2


def _fair(groups: list[list[_Reached]], options: s.EdgesStage) -> list[list[_Reached]]:
    """At most `neighbours` of a hop: one of each anchor in turn, the best anchor first; no chunk twice.

    A page that a link leads to or comes from gives its best `page_chunks` to an anchor, not all it has.
    """
    kept: list[list[_Reached]] = [[] for _ in groups]
    taken: set[str] = set()
    thinned = [_thinned(group, options.page_chunks) for group in groups]
    for turn in zip_longest(*thinned):
        for number, one in enumerate(turn):
            if one is not None and one.hit.chunk_id not in taken and len(taken) < options.neighbours:
                taken.add(one.hit.chunk_id)
                kept[number].append(one)
    return kept


def _thinned(group: list[_Reached], most: int) -> list[_Reached]:
    counts: dict[str, int] = {}
    kept = []
    for one in group:
        if of_page(one.edge.key):
            counts[one.hit.doc_id] = counts.get(one.hit.doc_id, 0) + 1
            if counts[one.hit.doc_id] > most:
                continue
        kept.append(one)
    return kept


def _joined(
    candidates: Sequence[Candidate],
    groups: Sequence[_Group],
    reached: list[list[_Reached]],
    hop: int,
    options: s.EdgesStage,
) -> tuple[Candidate, ...]:
    known = {candidate.hit.chunk_id: candidate for candidate in candidates}
    for group, found in zip(groups, reached, strict=True):
        for one in found:
            fit = 1 - options.relevance + options.relevance * one.relevance
            score = group.score / (1 + hop) * fit / one.edge.places
            old = known.get(one.hit.chunk_id) or Candidate(one.hit.model_copy(update={"parts": {}}), 0.0)
            if score <= old.score:
                continue
            via = Via(chunk_id=one.start, bridge=one.edge.key, hop=hop, how=one.edge.how)
            new = old._replace(hit=old.hit.model_copy(update={"via": via, "parts": {**old.hit.parts, "edge": score}}))
            known[one.hit.chunk_id] = new.plus(
                "edges", score - old.score,
                anchor=group.score, hop=float(hop), relevance=one.relevance, places=float(one.edge.places),
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
        if _asked_for(candidate) and candidate.score < best:
            now[chunk_id] = candidate.plus("linked", best - candidate.score, symbol="asked for")
    for (_, anchor), neighbours in _by_anchor(state, now):
        for number, candidate in enumerate(neighbours, start=1):
            least = options.share**number * now[anchor].score
            if candidate.score < least:
                lifted = candidate.plus(
                    "linked", least - candidate.score, anchor=now[anchor].score, place=float(number)
                )
                now[candidate.hit.chunk_id] = lifted
    return state.but(candidates=tuple(sorted(by_score(tuple(now.values())), key=_leading)))


def _asked_for(candidate: Candidate) -> bool:
    return candidate.hit.via is not None and candidate.hit.via.how == "symbol"


def _leading(candidate: Candidate) -> tuple[float, bool]:
    return (-candidate.score, not _asked_for(candidate))


def _by_anchor(state: SearchState, now: Mapping[str, Candidate]) -> list[tuple[tuple[int, str], list[Candidate]]]:
    """((hop, anchor), its neighbours best first), the first hop first. Anchors that were cut off lift nothing."""
    groups: dict[tuple[int, str], list[Candidate]] = {}
    for candidate in state.candidates:
        via = candidate.hit.via
        if via is not None and not _asked_for(candidate) and via.chunk_id in now:
            groups.setdefault((via.hop, via.chunk_id), []).append(candidate)
    return sorted(groups.items(), key=lambda group: group[0])
