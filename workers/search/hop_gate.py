"""Whether a question is worth more than one hop, by its words (E1, E4). Pure."""

from __future__ import annotations

from shared.models.route import Hops
from shared.routing import asks, route_by_rules


def reason_against(question: str) -> str | None:
    """Why no hop is made, None when one is: where the rules read several, and where a question leaves them unsure.

    A hop costs single-fact questions a point (cmrc2018: nDCG@10 98.6 in place of 99.6), and claims two (scifact).
    """
    routed = route_by_rules(question)
    if routed.hops is Hops.MULTI_HOP and not routed.unsure:
        return None
    if not routed.unsure:
        return "the question asks for one thing"
    return None if asks(question) else "it asks nothing and names no relation"
