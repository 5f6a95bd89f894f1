"""A language model that replies as a test says, and remembers what it was asked."""

from __future__ import annotations

from shared.providers.llm.client import Check, LLMReply, usable


class ScriptedLLM:
    """Gives `replies` in turn; an exception among them is raised. Each reply costs the tokens given."""

    def __init__(self, *replies: str | Exception, tokens_in: int, tokens_out: int) -> None:
        self.replies, self.prompts = list(replies), []
        self._cost = {"tokens_in": tokens_in, "tokens_out": tokens_out, "calls": 1}

    def complete(
        self, prompt: str, *, timeout_s: float, max_tokens: int | None = None, check: Check | None = None
    ) -> LLMReply:
        self.prompts.append(prompt)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return usable(LLMReply(text=reply, **self._cost), check)
