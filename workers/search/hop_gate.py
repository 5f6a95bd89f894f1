"""Whether a question is worth more than one hop: by its words, and by what the first hits leave open (E1, E4). Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from shared.models.route import Hops
from shared.routing import asks, route_by_rules

#: A passage with this share of the question's weight leaves nothing for another one to add.
_WHOLE = 0.9
When = Literal["always", "asked", "auto"]


def reason_against(question: str, when: When, covered: Callable[[], float]) -> str | None:
    """Why no hop is made, None when one is.

    asked: for all but claims and keywords that name no relation. auto: where the rules read several hops, and where they are
    unsure and no passage has the whole question: `covered` gives the largest share that one of the first hits has.
    """
    if when == "always":
        return None
    routed = route_by_rules(question)
    if routed.hops is Hops.MULTI_HOP and not routed.unsure:
        return None
    if when == "asked":
        return None if routed.unsure or asks(question) else "it asks nothing and names no relation"
    if not routed.unsure:
        return "the question asks for one thing"
    return "one passage has all of the question" if covered() >= _WHOLE else None
