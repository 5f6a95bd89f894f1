"""One round trip for all arms, then one list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.language.text import term_set, terms
from shared.models import Hit
from shared.models.hits import PagePart
from shared.settings import stages as s
from shared.store import DENSE, SPARSE
from workers.search.language import arms_agree
from workers.search.state import Candidate, PlainEffect, SearchArm, SearchState, Tools, by_score

DISAGREES = (
    "What the embedding model found shares no words with the question, and nobody says which languages it reads: "
    "keyword search only (embedding.languages)."
)

#: Keys in `Hit.parts` of an arm that boosts fields: the score before, and by what shares of it it was raised.
_BEFORE, _TITLE, _TRUTH = "unboosted", "title", "truth"


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
    lists |= {arm.name: boosted(lists[arm.name], arm) for arm in state.arms if arm.name in lists}
    return state.but(candidates=fuse(lists, {arm.name: arm.weight for arm in state.arms}, options))


def boosted(hits: Sequence[Hit], arm: SearchArm) -> list[Hit]:
    """The arm's hits, best first, so raised that on equal words a title beats compiled truth, and truth other text.

    Score times 1 + title * (share of the asked terms in the title) + truth * (share in the text of compiled truth).
    """
    asked = frozenset(terms(arm.text)) if arm.title or arm.truth else frozenset()
    if not asked:
        return list(hits)
    raised = []
    for hit in hits:
        title = arm.title * len(asked & term_set(hit.title)) / len(asked)
        truth = arm.truth * len(asked & term_set(hit.text)) / len(asked) if hit.part is PagePart.TRUTH else 0.0
        score = hit.score * (1 + title + truth)
        parts = {_BEFORE: hit.score, _TITLE: title, _TRUTH: truth} if title or truth else {}
        raised.append(hit.but(score=score, parts=parts) if parts or hit.parts else hit)
    return sorted(raised, key=lambda hit: (-hit.score, hit.chunk_id))


def fuse(
    lists: Mapping[str, Sequence[Hit]], weights: Mapping[str, float], options: s.FusionStage
) -> tuple[Candidate, ...]:
    """One list, best first, ties by id. A list that is alone keeps its scores.

    rrf: sum of w/(k+rank), ranks from 1 (Cormack et al. 2009), and one bonus (`_with_bonus`).
    linear: sum of w * score / the arm's best score (per-query maximum normalisation).
    """
    found: dict[str, Candidate] = {}
    parts: dict[str, dict[str, float]] = {}
    for name, hits in lists.items():
        best, weight = max((hit.score for hit in hits), default=0.0), weights[name]
        stage, rank_of = f"fusion {name}", f"{name}_rank"
        for rank, hit in enumerate(hits, start=1):
            chunk_id, score = hit.chunk_id, hit.score
            detail: dict[str, float | str] = {"rank": rank, "score": score, "weight": weight}
            if len(lists) == 1:
                value = score
            elif options.method == "linear":
                value = weight * max(0.0, score) / best if best > 0 else 0.0
                detail["best"] = best
            else:
                value = weight / (options.k + rank)
                detail["k"] = options.k
            detail |= hit.parts
            effect, before = PlainEffect(stage, value, detail), found.get(chunk_id)
            if before is None:
                found[chunk_id], parts[chunk_id] = Candidate(hit, value, (effect,)), {name: score, rank_of: rank}
            else:
                found[chunk_id] = Candidate(before.hit, before.score + value, (*before.effects, effect))
                parts[chunk_id] |= {name: score, rank_of: rank}
    if len(lists) > 1 and options.method == "rrf" and (options.first_bonus or options.next_bonus):
        given = {name: weights[name] for name in lists}
        found = {chunk_id: _with_bonus(one, parts[chunk_id], given, options) for chunk_id, one in found.items()}
    for chunk_id, candidate in found.items():
        parts[chunk_id]["fused"] = candidate.score
    return by_score(
        [Candidate(hit.but(parts=parts[chunk_id]), score, effects) for chunk_id, (hit, score, effects) in found.items()]
    )


def _with_bonus(
    candidate: Candidate, parts: Mapping[str, float], weights: Mapping[str, float], options: s.FusionStage
) -> Candidate:
    """The best of its bonuses for rank 1 and for ranks 2-3, each times the arm's weight over the greatest weight.

    Once, and weighted: paid by every arm it would drown the sum, and the weight of the question over its rewrites.
    """
    top = max(weights.values()) or 1.0
    bonuses = []
    for name in weights:
        rank = parts.get(f"{name}_rank")
        bonus = 0.0 if rank is None or rank > 3 else options.first_bonus if rank == 1 else options.next_bonus
        bonuses.append((bonus * weights[name] / top, name, bonus))
    paid, arm, bonus = max(bonuses, key=lambda one: one[0])
    share = weights[arm] / top
    return candidate.plus("fusion bonus", paid, arm=arm, bonus=bonus, share=share) if paid else candidate
