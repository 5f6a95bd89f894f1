"""Asks for typed queries: the LLM, once more with the fault named, then the rules. Always gives an answer."""

from __future__ import annotations

from functools import partial

from orchestrator.intent.rules import chosen, in_context, intent_by_rules
from orchestrator.planning.same import folded
from shared.errors import shown
from shared.llm.client import LLM
from shared.llm.dialogue import Dialogue
from shared.llm.prompts import intent_again_prompt, intent_prompt
from shared.llm.replies import parse_plan
from shared.models.session import MAX_QUERIES, Intent, Session, TypedQuery

_BY_RULES = "The queries were made by rules instead."


class Analyst:
    """Reads one question in its conversation; safe for threads if its LLM is. `llm` None: by rules, no warning."""

    def __init__(self, llm: LLM | None = None) -> None:
        self._llm = llm

    def analyse(self, question: str, session: Session, timeout_s: float) -> Intent:
        """What `question` asks to be looked up, within `timeout_s` seconds for both asks together.

        Never raises for a fault of the LLM: each fallback leaves a warning, and failed asks count in the cost. What
        the rules know to be small talk is not asked about.
        """
        ruled = intent_by_rules(question, session)
        if self._llm is None or not ruled.retrieval:
            return ruled
        asking = Dialogue(
            self._llm, partial(parse_plan, most=MAX_QUERIES), timeout_s, wanted="queries", instead=_BY_RULES
        )
        again = partial(intent_again_prompt, question, session, MAX_QUERIES)
        reply = asking.reply(intent_prompt(question, session, MAX_QUERIES), again)
        if reply is None:
            return ruled.model_copy(update={"warnings": tuple(asking.warnings), "cost": asking.cost})
        if reply.none:
            reason = f"The LLM found that nothing needs to be looked up ({reply.none})."
            return Intent(
                standalone=question, reason=reason, by="llm", warnings=tuple(asking.warnings), cost=asking.cost
            )
        standalone = in_context(question, session)
        queries = chosen(question, standalone, reply.queries)
        return Intent(
            queries=queries,
            standalone=standalone,
            reason="The question is searched as asked and by the LLM's queries.",
            by="llm",
            warnings=(*asking.warnings, *_left_out(reply.queries, queries)),
            cost=asking.cost,
        )


def _left_out(given: tuple[TypedQuery, ...], taken: tuple[TypedQuery, ...]) -> list[str]:
    known = {(folded(query.query), query.context_type) for query in taken}
    names = [shown(query.query) for query in given if (folded(query.query), query.context_type) not in known]
    return (
        [f"{len(names)} of the LLM's queries found no room among {MAX_QUERIES}: {'; '.join(names)}."] if names else []
    )
