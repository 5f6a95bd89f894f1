"""The answer to what asks for nothing: a greeting, thanks. Nothing was searched, and the answer says so."""

from __future__ import annotations

from shared.models import Answer, Summary
from shared.text import is_cjk_text

#: The verdict of such an answer.
NO_RETRIEVAL = "no retrieval needed"
_TEXT = (
    "This asks for nothing that would have to be looked up: nothing was retrieved.",
    "这句话没有需要查找的内容，因此没有进行检索。",
)


def unasked(question: str) -> Summary:
    """The text, in the question's language; it cites nothing."""
    return Summary(text=_TEXT[is_cjk_text(question)], kind="none")


def without_retrieval(answer: Answer) -> Answer:
    """The answer, told as one for which nothing was looked up."""
    return answer.model_copy(update={"verdict": NO_RETRIEVAL, "retrieval": False})
