"""The dialogue with a language model: client, prompts, and what is believed of its replies."""

from shared.providers.llm.client import LLM, ChatClient, LLMReply, spent
from shared.providers.llm.prompts import Memory, decompose_again_prompt, decompose_prompt, summarise_prompt
from shared.providers.llm.replies import parse_decomposition, summary_text

__all__ = [
    "LLM", "ChatClient", "LLMReply", "Memory", "decompose_again_prompt", "decompose_prompt", "parse_decomposition",
    "spent", "summarise_prompt", "summary_text",
]  # fmt: skip
