"""Asks for typed queries: the LLM, once more with the fault named, then the rules (C2). Always gives an answer."""

from __future__ import annotations

import time

from orchestrator.intent.rules import chosen, in_context, intent_by_rules
from orchestrator.planning.same import folded
from shared.errors import DeadlineError, PermanentError, RamifyError, ReplyError, TransientError, shown
from shared.llm.client import LLM, LLMReply, spent
from shared.llm.intent_reply import PlanReply, intent_again_prompt, intent_prompt, parse_plan
from shared.models import Cost
from shared.models.session import MAX_QUERIES, Intent, Session, TypedQuery

#: Time below which an LLM call is not worth starting, in seconds.
_MIN_TIME_S = 0.2
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
        asking = _Asking(self._llm, question, session, timeout_s)
        reply = asking.reply()
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


class _Asking:
    """The dialogue about one question: what it has cost and what went wrong so far."""

    def __init__(self, llm: LLM, question: str, session: Session, timeout_s: float) -> None:
        self._llm, self._question, self._session = llm, question, session
        self._deadline = time.monotonic() + timeout_s
        self.cost = Cost()
        self.warnings: list[str] = []

    def reply(self) -> PlanReply | None:
        """The LLM's plan, or None when the rules have to do it; `warnings` says why."""
        try:
            try:
                return self._ask(intent_prompt(self._question, self._session, MAX_QUERIES))
            except ReplyError as fault:
                first = str(fault)
            try:
                reply = self._ask(intent_again_prompt(self._question, self._session, MAX_QUERIES, first))
            except ReplyError as fault:
                self._warn(f"The LLM's queries could not be used, even after a second ask ({fault}).")
                return None
        except (TransientError, PermanentError, DeadlineError) as error:
            self._warn(f"The LLM gave no queries ({str(error).rstrip('.')}).")
            return None
        self.warnings.append(f"The LLM's first queries could not be used ({first}); it was asked once more.")
        return reply

    def _ask(self, prompt: str) -> PlanReply:
        left = self._deadline - time.monotonic()
        if left < _MIN_TIME_S:
            raise DeadlineError("no time was left to ask it")
        try:
            reply = self._llm.complete(prompt, timeout_s=left)
        except RamifyError as error:
            self._count(spent(error))
            raise
        self._count(reply)
        return parse_plan(reply.text, MAX_QUERIES)

    def _count(self, reply: LLMReply) -> None:
        self.cost += Cost(llm_calls=reply.calls, llm_tokens_in=reply.tokens_in, llm_tokens_out=reply.tokens_out)

    def _warn(self, sentence: str) -> None:
        self.warnings.append(f"{sentence} {_BY_RULES}")
