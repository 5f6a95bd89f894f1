"""What a search left open, and what a second search for it has found."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model


class GapSignal(StrEnum):
    """By what a gap shows."""

    CHAIN = "chain"  # a passage names what leads on, and nothing was reached over a name
    STEP = "step"  # a step of the plan without evidence
    FACET = "facet"  # a subquestion that found nothing, or nothing relevant
    NAME = "name"  # a name of the question that stands in no passage
    SAID = "said"  # the LLM says that it is missing
    ANSWER = "answer"  # nothing that could be the answer: no date for "when"


class Gap(Model):
    """One gap. `what`: the name, subquestion or kind of answer that is missing, in the words of question or passage.

    `gain`: how much the search that it is given to may bring, from 0; what it finds is weighed with it.
    """

    signal: GapSignal
    what: str
    gain: float = Field(default=1.0, ge=0)


class SearchedGap(Model):
    """A gap in an answer. `searched`: the leaves that were added for it; none: it was only seen.

    `closed`: nothing shows it any more. `text` says it to a reader of the question.
    """

    signal: GapSignal
    what: str
    searched: tuple[str, ...] = ()
    closed: bool = False
    text: str = ""
