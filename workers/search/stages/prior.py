"""What is known before any question: good sources, linked and fresh documents, what is never shown."""

from __future__ import annotations

from datetime import date
from math import log1p

from shared.settings import stages as s
from workers.search.state import State, by_score
from workers.search.tools import Tools


def sources(state: State, options: s.Sources, tools: Tools) -> State:  # noqa: ARG001
    """Multiply by the factor of the longest path prefix that fits."""
    boosts = tools.settings.search.source_boosts
    if not boosts:
        return state.skip("no search.source_boosts")
    boosted = []
    for candidate in state.candidates:
        prefix = max((p for p in boosts if candidate.hit.path.startswith(p)), key=len, default=None)
        boosted.append(candidate if prefix is None else candidate.times("sources", boosts[prefix], prefix=prefix))
    return state.but(candidates=by_score(boosted))


def backlinks(state: State, options: s.Backlinks, tools: Tools) -> State:  # noqa: ARG001
    """Multiply by 1 + w * ln(1 + n), n the number of other documents that link to the document."""
    if not any(candidate.hit.backlinks for candidate in state.candidates):
        return state.skip("no other document links to what was found")
    boosted = []
    for candidate in state.candidates:
        links = candidate.hit.backlinks
        factor = 1 + options.weight * log1p(links)
        boosted.append(candidate.times("backlinks", factor, links=links) if links else candidate)
    return state.but(candidates=by_score(boosted))


def recency(state: State, options: s.Recency, tools: Tools) -> State:
    """Multiply by 1 + w * 0.5^(age / half-life)."""
    today = tools.today or date.today()  # noqa: DTZ011 - documents carry dates without zones
    boosted = []
    for candidate in state.candidates:
        if candidate.hit.date is None:
            boosted.append(candidate)
            continue
        age = max(0, (today - date.fromisoformat(candidate.hit.date)).days)
        factor = 1 + options.weight * 0.5 ** (age / options.half_life_days)
        boosted.append(candidate.times("recency", factor, days=age))
    return state.but(candidates=by_score(boosted))


def facet(state: State, options: s.Facet, tools: Tools) -> State:  # noqa: ARG001
    """Multiply by 1 + w * (1 - score) what has the storage facet that the leaf asks for."""
    wanted = state.query.facet
    if not wanted:
        return state.skip("the question asks for no facet")
    if not any(candidate.hit.facet == wanted for candidate in state.candidates):
        return state.skip(f"nothing found is a memory's {wanted}")
    boosted = []
    for candidate in state.candidates:
        factor = 1 + options.weight * (1 - min(max(candidate.score, 0.0), 1.0))
        fits = candidate.hit.facet == wanted
        boosted.append(candidate.times("facet", factor, facet=wanted) if fits else candidate)
    return state.but(candidates=by_score(boosted))


def exclude(state: State, options: s.Exclude, tools: Tools) -> State:  # noqa: ARG001
    """Drop excluded paths; one that the caller's own filter asks for stays."""
    excludes = tools.settings.search.excludes
    if not excludes:
        return state.skip("no search.excludes")
    asked = state.query.filters.paths
    dropped = tuple(p for p in excludes if not any(a.startswith(p) for a in asked))
    kept = tuple(c for c in state.candidates if not c.hit.path.startswith(dropped)) if dropped else state.candidates
    return state.but(candidates=kept)
