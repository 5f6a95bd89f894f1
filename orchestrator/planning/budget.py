"""Deals out leaves (B2): a hard cap, split so that the same replies always give the same tree. Knows no questions."""

from __future__ import annotations

from collections.abc import Sequence


def first_budget(max_total_leaves: int) -> int:
    """Leaves for the first level's subquestions: one is always taken by the original question (B3)."""
    return max_total_leaves - 1


def split(budget: int, wants: Sequence[bool]) -> list[int]:
    """Leaves for each child, in order; 0 means that the child is dropped. `wants[i]`: child i asks for refinement.

    The first `budget` children get one leaf each. What is left goes evenly to those of them that want refinement,
    the odd ones to the first; it stays unused if none does. A child's share depends on its siblings alone and never on
    what another branch did with its own, so the order in which replies arrive cannot change the tree. The sum is at
    most `budget`.
    """
    kept = max(0, min(budget, len(wants)))
    shares = [1] * kept + [0] * (len(wants) - kept)
    wanting = [place for place in range(kept) if wants[place]]
    if not wanting:
        return shares
    each, odd = divmod(budget - kept, len(wanting))
    for rank, place in enumerate(wanting):
        shares[place] += each + (1 if rank < odd else 0)
    return shares
