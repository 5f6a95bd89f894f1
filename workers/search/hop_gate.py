"""Whether a question is worth more than one hop, by its words. Pure."""

from __future__ import annotations

from typing import Literal

from shared.models.route import Hops
from shared.routing import asks, route_by_rules
from shared.text import is_cjk_text

When = Literal["always", "questions", "asked"]


def reason_against(question: str, when: When) -> str | None:
    """Why no hop is made, None when one is.

    asked: where the rules of routing read several hops, and for questions that leave them unsure. questions: for
    English questions that they take for lookups too: a quarter of hotpotqa's and a seventh of musique's look so and
    gain. Chinese lookups lose a point by it (cmrc2018), and so do claims (scifact, two points).
    """
    if when == "always":
        return None
    routed = route_by_rules(question)
    if routed.hops is Hops.MULTI_HOP and not routed.unsure:
        return None
    if not asks(question):
        return "it asks nothing and names no relation"
    lookup = not routed.unsure and (when == "asked" or is_cjk_text(question))
    return "the question asks for one thing" if lookup else None
