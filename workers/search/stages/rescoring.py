"""New scores for candidates: by the cosine, by path, links, date or facet, by the reranker, and blended after it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from itertools import takewhile
from math import inf, log1p

import numpy as np

from shared.models import Cost
from shared.providers.rerankers.base import Reranked
from shared.providers.time_shares import seconds_for
from shared.settings import stages as s
from shared.settings.sections import reranker_traits
from workers.search.cached import reranked_once
from workers.search.state import Candidate, PlainEffect, SearchState, Tools, by_score

_NOT_HERE = "The results are not reranked: `find` loads no rerank model and asks no LLM; `ramify ask` does."

#: How a hit was reached that stays in folders left out by name, and how many of the best hits are worth a warning.
_CALLS = frozenset({"call", "called by"})
_BEST = 10
_LEFT_OUT = "What was found in {folders} is left out (search.exclude_folders); `--path {folder}` searches there."


def cosine(state: SearchState, options: s.CosineStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """(1 - w) * score / best + w * cosine; a candidate without a vector has cosine 0."""
    if not state.vector or not state.candidates:
        return state.skip("no vector of the question")
    best = max(candidate.score for candidate in state.candidates)
    mixed = []
    for candidate in state.candidates:
        near = similarity(state.vector, candidate.hit.vector)
        scaled = candidate.score / best if best > 0 else 0.0
        score = (1 - options.weight) * scaled + options.weight * near
        mixed.append(
            candidate.plus(
                "cosine", score - candidate.score, cosine=near, weight=options.weight, scaled=scaled, best=best
            )
        )
    return state.but(candidates=by_score(mixed))


def similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """Cosine of two vectors, 0 when one is missing."""
    if not one or not other or len(one) != len(other):
        return 0.0
    a, b = np.asarray(one), np.asarray(other)
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norm if norm > 0 else 0.0


def sources(state: SearchState, options: s.SourcesStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Multiply by the factor of the longest path prefix that fits."""
    boosts = tools.settings.search.source_boosts
    if not boosts:
        return state.skip("no search.source_boosts")

    def boosted(candidate: Candidate) -> Candidate:
        prefix = max((p for p in boosts if candidate.hit.path.startswith(p)), key=len, default=None)
        return candidate if prefix is None else candidate.times("sources", boosts[prefix], prefix=prefix)

    return state.but(candidates=by_score([*map(boosted, state.candidates)]))


def backlinks(state: SearchState, options: s.BacklinksStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Multiply by 1 + w * ln(1 + n), n the number of other documents that link to the document."""
    if not any(candidate.hit.backlinks for candidate in state.candidates):
        return state.skip("no other document links to what was found")

    def boosted(candidate: Candidate) -> Candidate:
        links = candidate.hit.backlinks
        factor = 1 + options.weight * log1p(links)
        return candidate.times("backlinks", factor, links=links, weight=options.weight) if links else candidate

    return state.but(candidates=by_score([*map(boosted, state.candidates)]))


def recency(state: SearchState, options: s.RecencyStage, tools: Tools) -> SearchState:
    """Multiply by 1 + w * 0.5^(age / half-life)."""
    today = tools.today or date.today()  # noqa: DTZ011 - documents carry dates without zones

    def boosted(candidate: Candidate) -> Candidate:
        if candidate.hit.date is None:
            return candidate
        days = max(0, (today - date.fromisoformat(candidate.hit.date)).days)
        factor = 1 + options.weight * 0.5 ** (days / options.half_life_days)
        return candidate.times("recency", factor, days=days, weight=options.weight, half_life=options.half_life_days)

    return state.but(candidates=by_score([*map(boosted, state.candidates)]))


def facet(state: SearchState, options: s.FacetStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Multiply by 1 + w * (1 - score) what has the storage facet that the leaf asks for."""
    wanted = state.query.facet
    if not wanted:
        return state.skip("the question asks for no facet")
    if not any(candidate.hit.facet == wanted for candidate in state.candidates):
        return state.skip(f"nothing found is a memory's {wanted}")

    def boosted(candidate: Candidate) -> Candidate:
        factor = 1 + options.weight * (1 - min(max(candidate.score, 0.0), 1.0))
        fits = candidate.hit.facet == wanted
        return candidate.times("facet", factor, facet=wanted, weight=options.weight) if fits else candidate

    return state.but(candidates=by_score([*map(boosted, state.candidates)]))


def exclude(state: SearchState, options: s.ExcludeStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Drop `search.excludes` (beginnings of paths) and `search.exclude_folders` (names of folders below a root).

    What the caller's own path filter asks for stays, and so do definitions that calls lead to: callers are complete.
    The trace counts what was dropped; where one of the best hits was, a warning says how to see it.
    """
    asked, search = state.query.filters.paths, tools.settings.search
    excludes = tuple(p for p in search.excludes if not any(a.startswith(p) for a in asked))
    folders = tuple(f"/{name}" for name in search.exclude_folders if not any(f"/{name}" in f"/{a}/" for a in asked))
    if not excludes and not folders:
        return state.skip("nothing is to be left out, or the path filter asks for it")
    kept, named = [], dict[str, None]()
    for place, candidate in enumerate(state.candidates):
        hit = candidate.hit
        folder = _folder_in(hit.path, folders)
        if folder and (hit.precedence < inf or (hit.via is not None and hit.via.how in _CALLS)):
            folder = ""
        if folder and place < _BEST:
            named[hit.path[: hit.path.index(folder) + len(folder)]] = None
        if not folder and not hit.path.startswith(excludes):
            kept.append(candidate)
    warnings = (_LEFT_OUT.format(folders=", ".join(named), folder=next(iter(named))),) if named else ()
    note = f"left out: {len(state.candidates) - len(kept)}" if len(kept) < len(state.candidates) else None
    return state.but(candidates=tuple(kept), note=note, warnings=(*state.warnings, *warnings))


@lru_cache(maxsize=8192)
def _folder_in(path: str, folders: tuple[str, ...]) -> str:
    """The first of these in a path, "" without one. Kept for a while: the same files are found again and again."""
    return next((name for name in folders if name in path), "")


def blend(state: SearchState, options: s.BlendStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """W * fused / best fused + (1 - w) * rerank; w by the rank in the fused list: 1-3, 4-10, 11 and on."""
    fused = {}
    for candidate in state.candidates:
        before = takewhile(lambda effect: effect.stage != "rerank", candidate.effects)
        fused[candidate.hit.chunk_id] = sum(effect.effect for effect in before)
    best = max(fused.values(), default=0.0)
    order = sorted(fused, key=lambda chunk_id: (-fused[chunk_id], chunk_id))
    ranks = {chunk_id: rank for rank, chunk_id in enumerate(order, start=1)}
    mixed = []
    for candidate in state.candidates:
        chunk_id = candidate.hit.chunk_id
        rank = ranks[chunk_id]
        weight = options.first if rank <= 3 else options.middle if rank <= 10 else options.rest
        scaled = fused[chunk_id] / best if best > 0 else 0.0
        score = weight * scaled + (1 - weight) * candidate.score
        detail = {"rank": float(rank), "weight": weight, "fused": scaled, "best": best}
        mixed.append(candidate.plus("blend", score - candidate.score, **detail))
    return state.but(candidates=by_score(mixed))


def rerank(state: SearchState, options: s.RerankStage, tools: Tools) -> SearchState:
    """Replace the best candidates' scores by the reranker's; if that fails, keep the order and add a warning."""
    if tools.reranker is None:
        return state.skip(_NOT_HERE, warn=True)
    best = state.candidates[: options.limit]
    before = {candidate.hit.chunk_id: candidate for candidate in best}
    hits = [one.hit if one.hit.score == one.score else one.hit.but(score=one.score) for one in best]
    seconds = seconds_for("leaf rerank", tools.left_s)
    ranked = reranked_once(tools, state.query.tenant, state.query.text, hits, seconds)
    after = []
    for hit in ranked.hits:
        old = before[hit.chunk_id]
        effect = hit.score - old.score
        told = PlainEffect("rerank", effect, {"score": hit.score, "by": ranked.reranker}, hit)
        after.append(Candidate(hit, old.score + effect, (*old.effects, told)))
    return state.but(
        # In the reranker's order: equal scores keep the fused one, and a named symbol's calls stand first.
        candidates=tuple(sorted(after, key=lambda candidate: candidate.hit.precedence)),
        reranked_by=ranked.reranker,
        verdict=ranked.verdict,
        warnings=(*state.warnings, *ranked.warnings),
        cost=state.cost + spent(ranked),
    )


def spent(ranked: Reranked) -> Cost:
    """What a rerank cost, or one that failed: calls of a rerank server, or of the LLM where it gives the scores."""
    if not reranker_traits(ranked.failed or ranked.reranker).llm:
        return Cost(rerank_calls=ranked.calls, rerank_documents=ranked.documents)
    tokens_in, tokens_out = ranked.tokens_in, ranked.tokens_out
    llm = Cost(llm_calls=ranked.calls, llm_tokens_in=tokens_in, llm_tokens_out=tokens_out)
    return llm + Cost(rerank_documents=ranked.documents)
