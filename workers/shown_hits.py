"""What of a ranked list is shown: the best, with room for other kinds and for the compiled truth of each page. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import floor, inf
from typing import TypeVar

from shared.errors import InputError
from shared.models import Hit, JobRequest, Node
from shared.models.hits import PagePart
from shared.settings import Settings
from shared.settings.stages import CapsStage
from shared.settings.strategies import Strategy, asked_strategy

H = TypeVar("H", bound=Hit)
#: What a share is raised by before it is rounded down: 0.29 * 100 is 28.999... to a computer.
_ROUNDING = 1e-9


def most_of_a_kind(share: float, places: int) -> int:
    """How many of `places` one kind may have: `share` of them, rounded down, and one at least."""
    return max(1, floor(share * places + _ROUNDING))


def kind_share(stages: Strategy) -> float:
    """The share of the results that one kind may have by a strategy: that of its last stage `caps`."""
    return next((stage.per_kind for stage in reversed(stages) if isinstance(stage, CapsStage)), 1.0)


def leaf_kind_share(request: JobRequest, node: Node, settings: Settings) -> float:
    """That share for a leaf; 1 where its strategy is not in the settings any more."""
    try:
        return kind_share(settings.stages_of(asked_strategy(request) or node.strategy or settings.search.strategy))
    except InputError:
        return 1.0


def shown_hits(hits: Sequence[H], limit: int, per_kind: float = 1.0) -> tuple[H, ...]:
    """The best `limit` hits in their order, with at most `per_kind` of these places for one kind, if others can fill.

    What a named symbol leads to is not capped. A page whose truth stands only behind the cut has it in place of
    its last hit.
    """
    kinds: Counter[str] = Counter()
    within: list[int] = []
    beyond: list[int] = []
    most = most_of_a_kind(per_kind, limit)
    for place, hit in enumerate(hits):
        kinds[hit.kind] += 1
        (within if hit.precedence < inf or kinds[hit.kind] <= most else beyond).append(place)
    chosen = sorted([*within, *beyond][:limit])
    kept = [hits[place] for place in chosen]
    with_truth = {hit.doc_id for hit in kept if hit.part is PagePart.TRUTH}
    last = {hit.doc_id: place for place, hit in enumerate(kept)}
    for place in sorted(set(range(len(hits))).difference(chosen)):
        hit = hits[place]
        if hit.part is PagePart.TRUTH and hit.doc_id in last.keys() - with_truth:
            with_truth.add(hit.doc_id)
            kept[last[hit.doc_id]] = hit
    return tuple(kept)
