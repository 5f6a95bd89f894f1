"""Linked hits after a rerank: an answer one call away may share no word with the question."""

from __future__ import annotations

from collections.abc import Mapping

from shared.settings import stages as s
from workers.search.state import Candidate, State, by_score
from workers.search.tools import Tools


def linked(state: State, options: s.Linked, tools: Tools) -> State:  # noqa: ARG001
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


def _by_anchor(state: State, now: Mapping[str, Candidate]) -> list[tuple[tuple[int, str], list[Candidate]]]:
    """((hop, anchor), its neighbours best first), the first hop first. Anchors that were cut off lift nothing."""
    groups: dict[tuple[int, str], list[Candidate]] = {}
    for candidate in state.candidates:
        via = candidate.hit.via
        if via is not None and not _asked_for(candidate) and via.chunk_id in now:
            groups.setdefault((via.hop, via.chunk_id), []).append(candidate)
    return sorted(groups.items(), key=lambda group: group[0])
