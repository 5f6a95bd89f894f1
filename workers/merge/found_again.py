"""The places of what only a second round has found, in a list that is ranked without it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shared.models import Facet, Hit, LeafResult, MergedHit, MergedPool, Node, Source
from shared.store import DENSE
from workers.merge.dedup import near_duplicates

#: Of the first places so many are kept for it: its scores are for other queries and say nothing beside the others.
#: One place costs musique three points of All@10, three are no better than two.
PLACES, FIRST = 2, 10
#: What keywords alone found takes so many, and only with this score in its leaf, where that was reranked: below it
#: hardly one says anything of its gap. What vectors found shares too few words with it to be told so (docs/quality.md).
WORDS_PLACES, LEAST = 4, 0.25
#: What a hit counts less for each one before it in its leaf.
_RANK_DISCOUNT = 0.1
#: Key in `Hit.parts`: its score in its leaf, weighed with the gain of the gap.
GAP = "gap"
#: Where a reranker has scored it, the score is a calibrated one.
_RERANK = "rerank"


def with_found_again(
    pool: MergedPool, leaves: Sequence[LeafResult], nodes: Mapping[str, Node], threshold: float, cap: int
) -> MergedPool:
    """`pool` with what these leaves found, at most `cap` hits: known ones get a source, new ones their places."""
    sources: dict[str, list[Source]] = {}
    scores: dict[str, float] = {}
    found: dict[str, Hit] = {}
    least = LEAST if _by_words(hit for leaf in leaves for hit in leaf.hits) else 0.0
    for leaf in leaves:
        gap = nodes[leaf.node_id].gap if leaf.node_id in nodes else None
        for rank, hit in enumerate(leaf.hits, start=1):
            source = Source(node_id=leaf.node_id, facet=Facet.GAP.value, rank=rank, score=hit.score)
            sources.setdefault(hit.chunk_id, []).append(source)
            score = hit.score * (gap.gain if gap else 1.0) / (1 + _RANK_DISCOUNT * (rank - 1))
            if hit.score >= least or _RERANK not in hit.parts:
                scores[hit.chunk_id] = max(score, scores.get(hit.chunk_id, score))
            found.setdefault(hit.chunk_id, hit)
    known = {hit.chunk_id for hit in pool.hits}
    fresh = [MergedHit(**{**dict(hit), "vector": ()}) for name, hit in found.items() if name not in known]
    recorded = pool.folds.again if pool.folds else None
    folds = near_duplicates([*pool.hits, *fresh], threshold) if recorded is None else recorded
    marked = [
        _marked(hit, sources[hit.chunk_id], scores.get(hit.chunk_id)) if hit.chunk_id in sources else hit
        for hit in (*pool.hits, *fresh)
        if hit.chunk_id not in folds
    ]
    hits = in_places(marked)[:cap]
    kept = {hit.chunk_id for hit in hits}
    own = {leaf.node_id: tuple(hit.chunk_id for hit in leaf.hits if hit.chunk_id in kept) for leaf in leaves}
    told = pool.folds and pool.folds.model_copy(update={"again": folds})
    return pool.model_copy(update={"hits": hits, "folds": told, "per_leaf": {**pool.per_leaf, **own}})


def in_places(hits: Sequence[MergedHit]) -> tuple[MergedHit, ...]:
    """The others in their order; what else a second round found, best first, at the end of the first `FIRST`.

    What it found that says little of its gap stands behind all others.
    """
    if not any(GAP in hit.parts or _only_again(hit) for hit in hits):
        return tuple(hits)
    others = [hit for hit in hits if not _only_again(hit)]
    more = sorted((hit for hit in hits if _only_again(hit)), key=lambda hit: -hit.parts.get(GAP, 0.0))
    places = WORDS_PLACES if _by_words(hits) else PLACES
    behind = [hit for hit in (*others[FIRST - places :], *more) if GAP in hit.parts]
    best = sorted(behind, key=lambda hit: -hit.parts[GAP])[:places]
    chosen = {hit.chunk_id for hit in best}
    rest = [hit for hit in (*others, *more) if hit.chunk_id not in chosen]
    before = FIRST - len(best)
    return (*rest[:before], *best, *rest[before:])


def _by_words(hits: Iterable[Hit]) -> bool:
    """Whether no vectors took part in a search."""
    return not any(DENSE in hit.parts for hit in hits)


def _only_again(hit: MergedHit) -> bool:
    return bool(hit.sources) and all(source.facet == Facet.GAP.value for source in hit.sources)


def _marked(hit: MergedHit, more: Sequence[Source], score: float | None) -> MergedHit:
    """With the sources of the second round, and its score there if that is enough for a place."""
    parts = hit.parts if score is None else {**hit.parts, GAP: score}
    return hit.model_copy(update={"sources": (*hit.sources, *more), "parts": parts})
