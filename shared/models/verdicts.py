"""What is wrong with an answer's sources: they contradict each other, are out of date, or say nothing of it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model
from shared.models.support import Quotation


class AnswerVerdict(StrEnum):
    """Codes of an answer; several may hold."""

    NOTHING_RELEVANT = "nothing_relevant"
    NO_RETRIEVAL = "no_retrieval"
    CONTRADICTING_SOURCES = "contradicting_sources"
    STALE_SOURCE = "stale_source"


class Contradiction(Model):
    """Two passages that say another thing of the same fact. `kind`: number, date, negation or opposed.

    `values`: in what they differ, as it is written.
    """

    kind: str
    one: Quotation
    other: Quotation
    values: tuple[str, str]


class StaleReason(StrEnum):
    """How it is known that a source is out of date."""

    SAYS_SO = "says_so"  # its document says that it is superseded, or its status does
    VALID_UNTIL = "valid_until"  # its document says until when it held
    SUPERSEDED_BY = "superseded_by"  # another page says that it takes its place
    NEWER_VERSION = "newer_version"


class StaleSource(Model):
    """`[number]` is out of date. `said`: what says so; `newer`: the number of the result that stands in its place."""

    number: int = Field(ge=1)
    reason: StaleReason
    said: str = ""
    newer: int | None = None
