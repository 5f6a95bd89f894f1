"""What an answer's sentences rest on: quotes of sources with their places, what was changed, what its sources lack."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model
from shared.models.place import Place


class Support(StrEnum):
    """What became of a sentence that was held against its sources."""

    SUPPORTED = "supported"
    REPAIRED = "repaired"  # its citation was moved to a source that says it, or a part that none says was cut
    UNSUPPORTED = "unsupported"  # kept with a mark, as `summary.unsupported` asks for
    UNCHECKED = "unchecked"  # in another language than all of its sources
    NOTHING = "states nothing"


class Quotation(Model):
    """What a sentence rests on: the characters `start`..`end` of a document's extracted text are `text`.

    `number` is the citation's; in a list it is the row's. `start` as that of a `Citation`.
    """

    number: int = Field(ge=1)
    text: str
    start: int | None = None
    end: int | None = None


class Citation(Model):
    """`[number]` in the answer's text stands for this chunk; `place`: page, slide or rows where the quote begins.

    `quote` is the characters `start`..`end` of the document's extracted text; None where it does not stand there in one
    piece, or the chunk is of an older release. `where`: the place in the terms of the format. `score` is the result's.
    """

    number: int = Field(ge=1)
    chunk_id: str
    path: str
    title: str
    doc_id: str = ""
    quote: str = ""
    place: str = ""
    where: Place | None = None
    start: int | None = None
    end: int | None = None
    score: float | None = None


class AnswerSentence(Model):
    """`text[start:end]` of an answer, with its citations. `cut`: what was left out of it.

    `kind`: how its sources say it: quote (its own characters stand there), words, verifier, moved (to a source that
    says it), cut, structure (read off the index: a call, a row); of an unsupported one the check that objected, with
    its `reason`; else why nothing was asked: "no claim", "other language".
    """

    start: int
    end: int
    support: Support = Support.SUPPORTED
    kind: str = ""
    cut: str = ""
    reason: str = ""
    quotes: tuple[Quotation, ...] = ()


class RemovedSentence(Model):
    """A sentence of an LLM that its sources do not support; `kind` names the check that objected."""

    text: str
    kind: str
    reason: str


class SupportReport(Model):
    """What became of the sentences of an answer that claim something, and the place of each that stayed."""

    sentences: int
    supported: int
    repaired: int
    unsupported: int = Field(default=0, description="kept with a mark: their sources do not say them")
    unchecked: int = Field(default=0, description="in another language than all of their sources")
    removed: tuple[RemovedSentence, ...] = ()
    spans: tuple[AnswerSentence, ...] = ()


def report_of(spans: tuple[AnswerSentence, ...], removed: tuple[RemovedSentence, ...] = ()) -> SupportReport:
    """The counts of these sentences."""
    count = {state: sum(one.support is state for one in spans) for state in Support}
    return SupportReport(
        sentences=len(spans) - count[Support.NOTHING] + len(removed),
        supported=count[Support.SUPPORTED],
        repaired=count[Support.REPAIRED],
        unsupported=count[Support.UNSUPPORTED],
        unchecked=count[Support.UNCHECKED],
        removed=removed,
        spans=spans,
    )
