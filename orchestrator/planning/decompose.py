"""Asks for a decomposition: the LLM, once more with the fault named, then the rules (B4). Always gives an answer.

The calls to the LLM happen behind the `LLM` protocol; nothing here opens a connection.
"""

from __future__ import annotations

import time

from orchestrator.planning.rules import decompose_by_rules
from shared.errors import DeadlineError, PermanentError, RamifyError, ReplyError, TransientError
from shared.llm.client import LLM, LLMReply, spent
from shared.llm.prompts import decompose_again_prompt, decompose_prompt
from shared.llm.xml_reply import parse_decomposition
from shared.models import Cost, Decomposition, SubQuery

#: Time below which an LLM call is not worth starting, in seconds.
_MIN_TIME_S = 0.2
_BY_RULES = "The question was decomposed by rules instead."


class Decomposer:
    """Decomposes one question at a time; safe for threads if its LLM is. `llm` None: by rules, without a warning."""

    def __init__(self, llm: LLM | None = None) -> None:
        self._llm = llm

    def decompose(self, question: str, most: int, timeout_s: float) -> tuple[Decomposition, Cost]:
        """At most `most` subqueries of `question`, within `timeout_s` seconds for both asks together.

        Never raises for a fault of the LLM: each fallback leaves a warning, and failed asks are counted in the cost
        as far as they are known.
        """
        if self._llm is None:
            return decompose_by_rules(question, most), Cost()
        asking = _Asking(self._llm, question, most, timeout_s)
        subqueries = asking.subqueries()
        if subqueries is not None:
            return Decomposition(subqueries=subqueries, by="llm", warnings=tuple(asking.warnings)), asking.cost
        ruled = decompose_by_rules(question, most)
        return ruled.model_copy(update={"warnings": (*asking.warnings, *ruled.warnings)}), asking.cost


class _Asking:
    """The dialogue about one question: what it has cost and what went wrong so far."""

    def __init__(self, llm: LLM, question: str, most: int, timeout_s: float) -> None:
        self._llm, self._question, self._most = llm, question, most
        self._deadline = time.monotonic() + timeout_s
        self.cost = Cost()
        self.warnings: list[str] = []

    def subqueries(self) -> tuple[SubQuery, ...] | None:
        """The LLM's subqueries, or None when the rules have to do it; `warnings` says why."""
        try:
            try:
                return self._ask(decompose_prompt(self._question, self._most))
            except ReplyError as fault:
                again = decompose_again_prompt(self._question, str(fault), self._most)
                first = str(fault)
            try:
                subqueries = self._ask(again)
            except ReplyError as fault:
                self._warn(f"The LLM's decomposition could not be used, even after a second ask ({fault}).")
                return None
        except (TransientError, PermanentError, DeadlineError) as error:
            self._warn(f"The LLM gave no decomposition ({str(error).rstrip('.')}).")
            return None
        self.warnings.append(f"The LLM's first decomposition could not be used ({first}); it was asked once more.")
        return subqueries

    def _ask(self, prompt: str) -> tuple[SubQuery, ...]:
        left = self._deadline - time.monotonic()
        if left < _MIN_TIME_S:
            raise DeadlineError("no time was left to ask it")
        try:
            reply = self._llm.complete(prompt, timeout_s=left)
        except RamifyError as error:
            self._count(spent(error))
            raise
        self._count(reply)
        return parse_decomposition(reply.text, most=self._most)

    def _count(self, reply: LLMReply) -> None:
        self.cost += Cost(llm_calls=reply.calls, llm_tokens_in=reply.tokens_in, llm_tokens_out=reply.tokens_out)

    def _warn(self, sentence: str) -> None:
        self.warnings.append(f"{sentence} {_BY_RULES}")
