"""One round trip for all arms, then one list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.models import Hit
from shared.models.hits import Effect
from shared.settings import stages as s
from shared.store import DENSE, SPARSE
from workers.search.language import arms_agree
from workers.search.state import Candidate, SearchState, Tools, by_score

DISAGREES = (
    "What the embedding model found shares no words with the question, and nobody says which languages it reads: "
    "keyword search only (embedding.languages)."
)


def fuse_arms(state: SearchState, options: s.FusionStage, tools: Tools) -> SearchState:
    """Ask the store for every arm at once and fuse the lists."""
    if not state.arms:
        return state.skip("No arm was left to search with.", warn=True)
    requests = [arm.request for arm in state.arms if arm.hits is None]
    found = iter(tools.need_store()[0].query(requests) if requests else ())
    lists = {arm.name: next(found) if arm.hits is None else arm.hits for arm in state.arms}
    if state.language_unknown and SPARSE in lists and not arms_agree(lists[SPARSE], lists.get(DENSE, ())):
        lists = {name: hits for name, hits in lists.items() if not name.startswith(DENSE)}
        state = state.but(warnings=(*state.warnings, DISAGREES))
    return state.but(candidates=fuse(lists, {arm.name: arm.weight for arm in state.arms}, options))


def fuse(
    lists: Mapping[str, Sequence[Hit]], weights: Mapping[str, float], options: s.FusionStage
) -> tuple[Candidate, ...]:
    """One list, best first, ties by id. A list that is alone keeps its scores.

    rrf: sum of w/(k+rank), ranks from 1 (Cormack et al. 2009), and the bonus of an arm's first three ranks.
    linear: sum of w * score / the arm's best score (per-query maximum normalisation).
    """
    found: dict[str, Hit] = {}
    parts: dict[str, dict[str, float]] = {}
    effects: dict[str, list[Effect]] = {}
    for name, hits in lists.items():
        best = max((hit.score for hit in hits), default=0.0)
        for rank, hit in enumerate(hits, start=1):
            if len(lists) == 1:
                value = hit.score
            elif options.method == "linear":
                value = weights[name] * max(0.0, hit.score) / best if best > 0 else 0.0
            else:
                bonus = options.first_bonus if rank == 1 else options.next_bonus if rank <= 3 else 0.0
                value = weights[name] / (options.k + rank) + bonus
            detail: dict[str, float | str] = {"rank": rank, "score": hit.score, "weight": weights[name]}
            found.setdefault(hit.chunk_id, hit)
            effects.setdefault(hit.chunk_id, []).append(
                Effect.model_construct(stage=f"fusion {name}", effect=value, detail=detail)
            )
            parts.setdefault(hit.chunk_id, {}).update({name: hit.score, f"{name}_rank": rank})
    candidates = []
    for chunk_id, hit in found.items():
        score = sum(effect.effect for effect in effects[chunk_id])
        fused = hit.model_copy(update={"parts": {**parts[chunk_id], "fused": score}})
        candidates.append(Candidate(fused, score, tuple(effects[chunk_id])))
    return by_score(candidates)
