"""Asks the LLM, and once more with the fault named when the reply cannot be used. Never raises for the LLM's faults.

The caller has a fallback for a missing reply; the warnings say that it was used, and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from shared.errors import DeadlineError, PermanentError, RamifyError, ReplyError, TransientError
from shared.models import Cost
from shared.providers.fallbacks import fell_back
from shared.providers.llm.client import LLM, spent
from shared.providers.time_shares import LEAST_S

T = TypeVar("T")


class Dialogue(Generic[T]):
    """Up to two asks within `timeout_s` seconds: what they have cost and what went wrong so far.

    `parse` reads a reply, or raises ReplyError. `wanted` is what the LLM is asked for ("decomposition"), `instead` the
    sentence that tells what is done without it; both go into the warnings.
    """

    def __init__(self, llm: LLM, parse: Callable[[str], T], timeout_s: float, *, wanted: str, instead: str) -> None:
        self._llm, self._parse = llm, parse
        self._wanted, self._instead = wanted, instead
        self._deadline = time.monotonic() + timeout_s
        self.cost = Cost()
        self.warnings: list[str] = []

    def reply(self, prompt: str, again: Callable[[str], str]) -> T | None:
        """The LLM's reply to `prompt`, or else to `again(fault)`; None when neither can be used, with a warning."""
        try:
            try:
                return self._ask(prompt)
            except ReplyError as fault:
                first = str(fault)
            try:
                second = self._ask(again(first))
            except ReplyError as fault:
                self._warn(f"The LLM's {self._wanted} could not be used, even after a second ask ({fault}).", fault)
                return None
        except (TransientError, PermanentError, DeadlineError) as error:
            self._warn(f"The LLM gave no {self._wanted} ({str(error).rstrip('.')}).", error)
            return None
        self.warnings.append(f"The LLM's first {self._wanted} could not be used ({first}); it was asked once more.")
        return second

    def _ask(self, prompt: str) -> T:
        left = self._deadline - time.monotonic()
        if left < LEAST_S:
            raise DeadlineError("no time was left to ask it")
        try:
            reply = self._llm.complete(prompt, timeout_s=left, check=self._parse)
        except RamifyError as error:
            self.cost += spent(error).cost
            raise
        self.cost += reply.cost
        return self._parse(reply.text)

    def _warn(self, sentence: str, error: RamifyError) -> None:
        fell_back("llm", error)
        self.warnings.append(f"{sentence} {self._instead}")
