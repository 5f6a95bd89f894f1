"""What people say of answers."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model


class Verdict(StrEnum):
    """Whether an answer, or a document for its question, is right."""

    GOOD = "good"
    BAD = "bad"


class Judgement(Model):
    """What people have said of one answer: of it as a whole, and of documents by id."""

    job_id: str
    answer: Verdict | None = None
    documents: dict[str, Verdict] = Field(default_factory=dict)
