"""Reads a subquestion's answer off its best passages with the LLM. What it says must stand in them."""

from __future__ import annotations

from collections.abc import Sequence

from shared.cache import Cache
from shared.errors import ReplyError
from shared.language.text import fold
from shared.llm.client import LLM, LLMReply
from shared.llm.prompts import read_answer_prompt
from shared.llm.replies import MAX_ANSWER_TOKENS, parse_answer
from shared.models import Cost, Hit
from shared.models.base import Model
from workers.search.state import Tools


class Answer(Model):
    """What was read: the answer, or None when the passages do not hold one; what that cost."""

    text: str | None = None
    cost: Cost = Cost()


def read_answer(question: str, hits: Sequence[Hit], tenant: str, llm: LLM, tools: Tools) -> Answer:
    """The answer to `question` that stands in `hits`; identical readings run once.

    Raises: TransientError, PermanentError, or ReplyError for a reply that cannot be used; each tells its cost
    (`shared.llm.client.spent`).
    """
    passages = [(hit.title, hit.text) for hit in hits]

    def compute() -> Answer:
        prompt = read_answer_prompt(question, passages)
        reply = llm.complete(prompt, timeout_s=tools.timeout_s, max_tokens=MAX_ANSWER_TOKENS)
        return Answer(text=_checked(reply, passages), cost=reply.cost)

    cache: Cache | None = tools.cache
    if cache is None:
        return compute()
    parts = {
        "tenant": tenant,
        "question": question,
        "passages": [list(passage) for passage in passages],
        "model": tools.settings.llm_model,
        "server": str(tools.settings.llm_base_url),
    }
    wait = min(tools.settings.cache.wait_s, tools.timeout_s)
    answer, result = cache.get_or_compute("answer", parts, Answer, compute, wait_s=wait)
    return answer.model_copy(update={"cost": Cost()}) if result.reused else answer


def _checked(reply: LLMReply, passages: Sequence[tuple[str, str]]) -> str | None:
    try:
        return _standing(parse_answer(reply.text), passages)
    except ReplyError as error:
        error.spent = reply  # type: ignore[attr-defined] # read by spent()
        raise


def _standing(answer: str | None, passages: Sequence[tuple[str, str]]) -> str | None:
    if answer is None or any(_stands_in(answer, passage) for passage in passages):
        return answer
    raise ReplyError("its answer stands in none of the passages")


def _stands_in(answer: str, passage: tuple[str, str]) -> bool:
    """Whatever its case, width and spacing."""
    return any(_comparable(answer) in _comparable(part) for part in passage)


def _comparable(text: str) -> str:
    return " ".join(fold(text).split())
