"""Asks for a decomposition: the LLM, once more with the fault named, then the rules. Always gives an answer.

The calls to the LLM happen behind the `LLM` protocol; nothing here opens a connection.
"""

from __future__ import annotations

from functools import partial

from orchestrator.planning.rules import decompose_by_rules
from shared.llm.client import LLM
from shared.llm.dialogue import Dialogue
from shared.llm.prompts import decompose_again_prompt, decompose_prompt
from shared.llm.replies import parse_decomposition
from shared.models import Cost, Decomposition

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
        asking = Dialogue(
            self._llm, partial(parse_decomposition, most=most), timeout_s, wanted="decomposition", instead=_BY_RULES
        )
        again = partial(decompose_again_prompt, question, most=most)
        subqueries = asking.reply(decompose_prompt(question, most), again)
        if subqueries is not None:
            return Decomposition(subqueries=subqueries, by="llm", warnings=tuple(asking.warnings)), asking.cost
        ruled = decompose_by_rules(question, most)
        return ruled.model_copy(update={"warnings": (*asking.warnings, *ruled.warnings)}), asking.cost
