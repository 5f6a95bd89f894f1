"""Decides how a question is answered: the rules first, the LLM where they are unsure. Always gives a decision.

The calls to the LLM happen behind the `LLM` protocol; nothing here opens a connection or keeps a cache.
"""

from __future__ import annotations

from shared.errors import DeadlineError, PermanentError, RamifyError, ReplyError, TransientError
from shared.language.routing import UNSURE_BELOW, route_by_rules
from shared.llm.client import LLM, LLMReply, spent
from shared.llm.prompts import route_prompt
from shared.llm.replies import MAX_ROUTE_TOKENS, RouteReply, parse_route
from shared.models import Cost
from shared.models.route import Hops, QueryType, Reason, Routed

#: Time below which an LLM call is not worth starting, in seconds.
_MIN_TIME_S = 0.2
#: A model's word counts like one good rule, beside what the rules themselves had for the same type.
_LLM_WEIGHT = 0.7
_BY_RULES = "The rules' best guess was kept."


class Router:
    """Routes one question at a time; safe for threads if its LLM is. `llm` None: by rules alone, without a warning."""

    def __init__(self, llm: LLM | None = None, unsure_below: float = UNSURE_BELOW) -> None:
        self._llm, self._unsure_below = llm, unsure_below

    def route(self, question: str, timeout_s: float, strategy: str | None = None) -> tuple[Routed, Cost]:
        """How `question` is to be answered, within `timeout_s` seconds, and what asking the LLM has cost.

        `strategy` is the one that the caller named, if any: it is followed, so the LLM is not asked and something is
        always retrieved. Never raises for a fault of the LLM: the rules' best guess comes back with a warning.
        """
        ruled = route_by_rules(question, self._unsure_below)
        if strategy is not None:
            return as_requested(ruled, f"strategy {strategy}"), Cost()
        if not ruled.unsure or self._llm is None:
            return ruled, Cost()
        return self._asked(self._llm, question, ruled, timeout_s)

    def _asked(self, llm: LLM, question: str, ruled: Routed, timeout_s: float) -> tuple[Routed, Cost]:
        reply = LLMReply(text="")
        if timeout_s < _MIN_TIME_S:
            return _warned(ruled, DeadlineError("no time was left to ask it")), Cost()
        try:
            reply = llm.complete(route_prompt(question), timeout_s=timeout_s, max_tokens=MAX_ROUTE_TOKENS)
            decided = self._decided(parse_route(reply.text), ruled)
        except (TransientError, PermanentError, DeadlineError, ReplyError) as error:
            return _warned(ruled, error), (reply if reply.calls else spent(error)).cost
        return decided, reply.cost

    def _decided(self, said: RouteReply, ruled: Routed) -> Routed:
        says = said.hops.value if said.hops else said.type.value
        reason = Reason(rule="llm", says=says, words="", weight=_LLM_WEIGHT)
        agreed = ruled.confidence if ruled.type is said.type else 0.0
        confidence = round(1 - (1 - _LLM_WEIGHT) * (1 - agreed), 2)
        return Routed(
            type=said.type, intent=said.intent, hops=said.hops, confidence=confidence,
            unsure=confidence < self._unsure_below, reasons=(reason, *ruled.reasons), by="llm",
        )  # fmt: skip


def _warned(ruled: Routed, error: RamifyError) -> Routed:
    warning = f"The LLM did not say how to answer ({str(error).rstrip('.')}). {_BY_RULES}"
    return ruled.model_copy(update={"warnings": (warning,)})


def as_requested(ruled: Routed, what: str) -> Routed:
    """The rules' reading under the caller's word: never `none`, never unsure. `what` of the request decided."""
    kind = QueryType.SIMPLE_RULE if ruled.type is QueryType.NONE else ruled.type
    hops: Hops | None = ruled.hops if kind is QueryType.COMPLEX_REASONING else None
    asked = Reason(rule="request", says=kind.value, words=what, weight=1.0)
    return ruled.model_copy(
        update={
            "type": kind, "hops": hops, "confidence": 1.0, "unsure": False, "by": "request",
            "reasons": (asked, *ruled.reasons),
        }
    )  # fmt: skip
