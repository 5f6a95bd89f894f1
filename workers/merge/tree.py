"""Merges the leaves of a tree into one pool: by quota and best score, never by reciprocal rank fusion. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from shared.models import Facet, Hit, JobRequest, LeafResult, MergedHit, MergedPool, Node, Source
from shared.models.hits import Effect, Folds
from shared.models.plan import node_order
from shared.providers.rerankers.base import score_parts
from shared.settings.sections import MultiQuerySettings
from workers.merge.dedup import near_duplicates
from workers.merge.found_again import in_places, with_found_again
from workers.shown_hits import shown_hits

#: Weight of a hit's score for its own subquestion in its final score.
LEAF_SHARE = 0.5
#: Weight of a leaf that rules made beside the question's own: they split by words, and may lose what was asked about.
RULES_WEIGHT = 0.7


def merge_tree(  # noqa: PLR0913, PLR0917 - what a merge goes by
    leaves: Sequence[LeafResult],
    nodes: Mapping[str, Node],
    limits: MultiQuerySettings,
    cap: int,
    per_kind: float = 1.0,
    known: Folds | None = None,
) -> MergedPool:
    """The best hits of all leaves, at most `cap`, best first; ties are broken by chunk id.

    A chunk found by several leaves stands once, with its best score and all its sources; a near-duplicate is folded
    into the better hit (`limits.dedup_threshold`). Each leaf keeps at least its `limits.min_per_leaf` best hits, or
    as many as fit for all leaves alike; where not even one fits, the question's own leaf and then the best leaves
    get theirs. The places left go to the best scores. `per_kind` is the share of the places that one kind may have, and
    pages keep their truth (`workers.shown_hits`). A leaf that rules made counts with `RULES_WEIGHT` of its scores,
    unless it is a step that waits for others or is waited for: those the rules read right. Scores of leaves that were
    reranked differently are not compared: such hits are ordered by their rank, and a warning says so. A leaf that is
    alone keeps the order that its strategy gave it (the stage `mmr` orders without changing scores). What only a leaf
    of a second round has found gets places of its own (`workers.merge.found_again`). `known`: near-duplicates that were
    found when the hits still had vectors.
    """
    ordered = sorted(leaves, key=lambda leaf: node_order(leaf.node_id))
    added = [leaf for leaf in ordered if leaf.node_id in nodes and nodes[leaf.node_id].gap]
    found = {leaf.node_id: leaf for leaf in ordered if leaf not in added}
    chunks, warnings = _best_hits(found.values(), nodes)
    folds = known.first if known else _folds([hit for hit, _ in chunks], limits.dedup_threshold)
    merged = _merged(chunks, folds)
    ranked = {
        node_id: list(dict.fromkeys(folds.get(hit.chunk_id, hit.chunk_id) for hit in leaf.hits))
        for node_id, leaf in found.items()
    }
    chosen = _chosen(ranked, merged, nodes, quota=limits.min_per_leaf, cap=cap)
    chosen_first = sorted(merged.values(), key=lambda hit: hit.chunk_id not in chosen)
    kept = {hit.chunk_id for hit in shown_hits(chosen_first, cap, per_kind)}
    rerankers = {leaf.reranker for leaf in found.values() if leaf.hits}
    pool = MergedPool(
        hits=tuple(hit for chunk_id, hit in merged.items() if chunk_id in kept),
        per_leaf={node_id: tuple(c for c in ids if c in kept) for node_id, ids in ranked.items()},
        folded=len(folds),
        folds=known or (Folds(first=folds) if any(hit.vector for hit, _ in chunks) else None),
        reranked_by=rerankers.pop() if len(rerankers) == 1 else None,
        warnings=warnings,
    )
    return with_found_again(pool, added, nodes, limits.dedup_threshold, cap) if added else pool


def only_original_leaf(pool: MergedPool) -> bool:
    """True when no planned leaf found something: the question's own is ranked against the question already.

    What a second round found has places of its own.
    """
    own = {Facet.ORIGINAL.value, Facet.GAP.value}
    return all(source.facet in own for hit in pool.hits for source in hit.sources)


def leaf_share(request: JobRequest) -> float:
    """The weight of a hit's score for its leaf.

    0 for a question that refers back to its conversation: a score for "and the second one?" says nothing, and the
    job's question is the one in context.
    """
    refers_back = bool(request.typed) and request.typed[0].query != request.question
    return 0.0 if refers_back else LEAF_SHARE


def apply_root_rerank(
    pool: MergedPool, reranked_hits: Sequence[Hit], reranked_by: str | None = None, leaf_share: float = LEAF_SHARE
) -> MergedPool:
    """`pool` ordered by the mean of a hit's scores for its leaf (`parts["leaf"]`) and for the question.

    What a symbol that the question names leads to stays first (`Via.precedence`): a reranker that reads text cannot
    know who calls whom. The mean keeps the evidence that only a subquestion can see (musique's oracle plan: Recall@5
    83.7 against 80.0 by the root score alone). Where leaves and root were reranked by different rerankers, only the
    root score counts.
    Nothing is dropped: hits that were not reranked follow in their old order. Unknown and repeated ones are ignored.
    """
    weight = leaf_share if reranked_by is not None and reranked_by == pool.reranked_by else 0.0
    old = {hit.chunk_id: hit for hit in pool.hits}
    placed: dict[str, MergedHit] = {}
    for hit in reranked_hits:
        known = old.get(hit.chunk_id)
        if known is not None and hit.chunk_id not in placed:
            parts = {**hit.parts, **known.parts, "leaf": known.score}
            if "rerank" in hit.parts:
                parts["rerank"] = hit.parts["rerank"]
            score = weight * known.score + (1 - weight) * hit.score
            explain = known.explain
            if explain:
                root = {"leaf": known.score, "root": hit.score, "weight": 1 - weight, **score_parts(hit)}
                explain = (*explain, Effect(stage="root rerank", effect=score - known.score, detail=root))
            placed[hit.chunk_id] = known.but(score=score, parts=parts, explain=explain)
    rest = {chunk_id: hit for chunk_id, hit in old.items() if chunk_id not in placed}
    ordered = (*sorted(placed.values(), key=lambda hit: -hit.score), *rest.values())
    hits = in_places(sorted(ordered, key=lambda hit: hit.precedence))
    return pool.model_copy(update={"hits": hits, "reranked_by": reranked_by or pool.reranked_by})


def _best_hits(
    leaves: Iterable[LeafResult], nodes: Mapping[str, Node]
) -> tuple[list[tuple[Hit, list[Source]]], tuple[str, ...]]:
    """Of each chunk its best hit and all sources, best first; a warning when the leaves' scores cannot be compared."""
    by_chunk: dict[str, list[tuple[Hit, Source]]] = {}
    rerankers: set[str] = set()
    for leaf in leaves:
        facet = nodes[leaf.node_id].facet if leaf.node_id in nodes else Facet.CORE
        rerankers |= {leaf.reranker or "none"} if leaf.hits else set()
        once: dict[str, Hit] = {}
        for hit in leaf.hits:
            once.setdefault(hit.chunk_id, hit)
        for rank, hit in enumerate(once.values(), start=1):
            source = Source(node_id=leaf.node_id, facet=facet.value, rank=rank, score=hit.score)
            by_chunk.setdefault(hit.chunk_id, []).append((_weighed(hit, nodes.get(leaf.node_id)), source))
    comparable = len(rerankers) <= 1
    by_score = comparable and len({source.node_id for finds in by_chunk.values() for _, source in finds}) > 1
    chunks = []
    for finds in by_chunk.values():
        hit, _ = min(finds, key=lambda find: _order(find[0], find[1].rank, by_score=by_score))
        chunks.append((hit, [source for _, source in finds]))
    chunks.sort(key=lambda one: _order(one[0], min(source.rank for source in one[1]), by_score=by_score))
    if comparable:
        return chunks, ()
    names = ", ".join(sorted(rerankers))
    return chunks, (f"The leaves were reranked differently ({names}), so they were merged by rank, not by score.",)


def _weighed(hit: Hit, node: Node | None) -> Hit:
    """The hit with the score that its leaf's weight leaves it; a score below zero falls, too."""
    steps = node is not None and (node.depends_on or node.needed_by)
    if node is None or node.by != "rules" or node.facet is Facet.ORIGINAL or steps:
        return hit
    score = hit.score * RULES_WEIGHT if hit.score > 0 else hit.score / RULES_WEIGHT
    detail: dict[str, float | str] = {"leaf": node.id, "by": node.by, "weight": RULES_WEIGHT}
    effect = Effect(stage="tree merge", effect=score - hit.score, detail=detail)
    return hit.but(score=score, explain=(*hit.explain, effect) if hit.explain else ())


def _order(hit: Hit, rank: int, *, by_score: bool) -> tuple[float, float, float, str]:
    first, second = (-hit.score, rank) if by_score else (rank, -hit.score)
    return hit.precedence, first, second, hit.chunk_id


def _folds(hits: Sequence[Hit], threshold: float) -> dict[str, str]:
    """Near-duplicates as in `near_duplicates`. Two functions that look alike and both call a named symbol stay."""
    alone = {hit.chunk_id for hit in hits if hit.precedence < inf}
    return {one: other for one, other in near_duplicates(hits, threshold).items() if one not in alone}


def _merged(chunks: Sequence[tuple[Hit, list[Source]]], folds: Mapping[str, str]) -> dict[str, MergedHit]:
    """Chunk id -> merged hit for every chunk that is not folded, best first; one source per leaf, its best."""
    best: dict[str, dict[str, Source]] = {}
    for hit, sources in chunks:
        own = best.setdefault(folds.get(hit.chunk_id, hit.chunk_id), {})
        for source in sources:
            if source.node_id not in own or source.rank < own[source.node_id].rank:
                own[source.node_id] = source
    return {
        hit.chunk_id: MergedHit.of_valid(
            {
                **vars(hit),
                "vector": (),  # not needed any more, and large in the job store
                "sources": tuple(sorted(best[hit.chunk_id].values(), key=lambda source: node_order(source.node_id))),
            }
        )
        for hit, _ in chunks
        if hit.chunk_id not in folds
    }


def _chosen(
    ranked: Mapping[str, Sequence[str]],
    best_first: Mapping[str, MergedHit],
    nodes: Mapping[str, Node],
    *,
    quota: int,
    cap: int,
) -> set[str]:
    """The chunk ids that are kept: whole rounds of one place per leaf while they fit, then the best of the rest.

    What a named symbol leads to comes before all of them: its callers are to be complete.
    """
    place = {chunk_id: at for at, chunk_id in enumerate(best_first)}

    def first(node_id: str) -> tuple[bool, int, tuple[int, ...]]:
        asked = node_id in nodes and nodes[node_id].facet is Facet.ORIGINAL
        return (not asked, place[ranked[node_id][0]], node_order(node_id))

    order = sorted((node_id for node_id, ids in ranked.items() if ids), key=first)
    kept = set([chunk_id for chunk_id, hit in best_first.items() if hit.precedence < inf][:cap])
    for turn in range(quota):
        wanted = dict.fromkeys(ranked[node_id][turn] for node_id in order if turn < len(ranked[node_id]))
        new = [chunk_id for chunk_id in wanted if chunk_id not in kept]
        if turn and len(kept) + len(new) > cap:
            break  # no leaf gets a place more than the others
        kept.update(new[: cap - len(kept)])
    for chunk_id in best_first:
        if len(kept) >= cap:
            break
        kept.add(chunk_id)
    return kept
